//! Tests of dpkg's handling of changed settings: at an upgrade, a removal, and a purge.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use tempfile::TempDir;

use super::root::Root;
use super::{run, source};
use crate::support::{assert_contains, files_below};

const FILE: &str = "etc/drip/gateway.toml";
const MINE: &str = "# mine\n";

/// Packages of several versions. Their program does nothing: it is not run.
struct Packages {
    folder: TempDir,
}

impl Packages {
    fn new() -> Self {
        let folder = TempDir::new().expect("a folder");
        run(Command::new(source("packaging/build"))
            .args(["--binary", "/bin/true", "--version", "1.0", "--out"])
            .arg(folder.path())
            .arg("deb"));
        let built = files_below(folder.path());
        let [built] = &built[..] else {
            panic!("one package")
        };
        fs::rename(built, folder.path().join("1.0.deb")).expect("a name");
        Self { folder }
    }

    /// Returns the package of a version whose settings end with this.
    fn with(&self, version: &str, more: &str) -> PathBuf {
        let [built, tree, package] = ["1.0.deb", version, &format!("{version}.deb")]
            .map(|name| self.folder.path().join(name));
        let deb = |arguments: &[&str]| {
            run(Command::new("fakeroot")
                .arg("dpkg-deb")
                .args(arguments)
                .current_dir(self.folder.path()));
        };
        let name = |path: &PathBuf| path.display().to_string();
        deb(&["-R", &name(&built), &name(&tree)]);
        let control = fs::read_to_string(tree.join("DEBIAN/control")).expect("a file");
        let control = control.replace("Version: 1.0\n", &format!("Version: {version}\n"));
        fs::write(tree.join("DEBIAN/control"), control).expect("a file");
        let settings = fs::read_to_string(tree.join(FILE)).expect("a file") + more;
        fs::write(tree.join(FILE), settings).expect("a file");
        deb(&["-z1", "-b", &name(&tree), &name(&package)]);
        package
    }
}

fn install(root: &Root, options: &[&str], package: &Path) -> Output {
    let package = package.display().to_string();
    root.try_dpkg(&[options, &["--install", &package]].concat())
}

fn succeeds(output: &Output) {
    assert!(output.status.success(), "{output:?}");
}

#[test]
fn edited_settings_stay_and_those_that_nobody_edited_are_of_the_new_package() {
    let (root, packages) = (Root::new(), Packages::new());
    succeeds(&install(&root, &[], &packages.with("1.0.1", "")));
    succeeds(&install(&root, &[], &packages.with("1.0.2", "# newer\n")));
    assert!(root.read(FILE).ends_with("# newer\n"));
    succeeds(&install(&root, &[], &packages.with("1.1", "")));
    assert_eq!(files_below(&root.path("etc/drip")).len(), 1);
    let mine = root.read(FILE) + MINE;
    fs::write(root.path(FILE), &mine).expect("a file");

    // A package with the same settings asks nothing.
    succeeds(&install(&root, &[], &packages.with("1.2", "")));
    assert_eq!(root.read(FILE), mine);
    // With other settings, dpkg asks. Without an answer, the package stays unconfigured.
    let asked = install(&root, &[], &packages.with("1.3", "# newer\n"));
    assert!(!asked.status.success(), "{asked:?}");
    let received = String::from_utf8_lossy(&asked.stderr);
    assert_contains!(received, "end of file on stdin at conffile prompt");
    assert_eq!(root.read(FILE), mine);
    succeeds(&root.try_dpkg(&["--force-confold", "--configure", "--pending"]));
    assert_eq!(root.read(FILE), mine);
    let new = root.read("etc/drip/gateway.toml.dpkg-dist");
    assert!(new.ends_with("# newer\n"));
    // As unattended upgrades do.
    let unattended = ["--force-confdef", "--force-confold"];
    let newest = packages.with("1.4", "# newest\n");
    succeeds(&install(&root, &unattended, &newest));
    assert_eq!(root.read(FILE), mine);
    let new = root.read("etc/drip/gateway.toml.dpkg-dist");
    assert!(new.ends_with("# newest\n"));
    // The other choice keeps the edited file beside it.
    let last = packages.with("1.5", "# last\n");
    succeeds(&install(&root, &["--force-confnew"], &last));
    assert!(root.read(FILE).ends_with("# last\n"));
    assert_eq!(root.read("etc/drip/gateway.toml.dpkg-old"), mine);
}

#[test]
fn a_removal_keeps_the_settings_and_a_purge_keeps_only_files_of_your_own() {
    let (root, packages) = (Root::new(), Packages::new());
    let package = packages.with("1.1", "");
    succeeds(&install(&root, &[], &package));
    let mine = root.read(FILE) + MINE;
    fs::write(root.path(FILE), &mine).expect("a file");
    let own = root.path("etc/drip/conf.d/own.toml");
    fs::create_dir(own.parent().expect("a folder")).expect("a folder");
    fs::write(&own, "").expect("a file");

    root.dpkg(&["--remove", "drip"]);
    assert_eq!(root.read(FILE), mine);
    // After a new installation, the settings are kept.
    succeeds(&install(&root, &[], &package));
    assert_eq!(root.read(FILE), mine);
    let newer = packages.with("1.2", "# newer\n");
    succeeds(&install(&root, &["--force-confold"], &newer));
    root.dpkg(&["--purge", "drip"]);
    assert_eq!(files_below(&root.path("etc/drip")), [own]);
    assert!(!root.path("etc/default/drip").exists());
}
