//! Tests of the state file.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use limit::{Moment, Rate, SavedAccount};
use proptest::prelude::*;

use super::format::{Reader, Unusable, Writer};
use super::lock::Lock;
use super::record::{Record, Stamp};
use crate::time::clock;
use crate::zone::{KeyRecord, SavedKey};

fn saved_key(bytes: &[u8], rate: &str, account: Option<SavedAccount>) -> SavedKey {
    SavedKey {
        key: bytes.into(),
        rate: rate.parse().unwrap(),
        account,
    }
}

fn zone_rate() -> Rate {
    "10r/s".parse().unwrap()
}

fn key_record(key: SavedKey) -> Record {
    Record::Key(KeyRecord::new(key, zone_rate()))
}

fn records() -> Vec<Record> {
    let bucket = SavedAccount::LeakyBucket { ahead: 1_234 };
    vec![
        Record::Written(Stamp::now()),
        key_record(saved_key(b"a", "10r/s", Some(bucket))),
        key_record(saved_key(b"\xff\n", "5r/d", None)),
    ]
}

fn write(path: &Path, records: &[Record]) {
    let mut writer = Writer::begin(path).unwrap();
    for record in records {
        writer.write(record).unwrap();
    }
    writer.finish().unwrap();
}

/// Creates a folder. Returns it with the path of the file in it.
fn folder_and_path() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("drip.state");
    (folder, path)
}

fn far_deadline() -> Moment {
    clock::now() + std::time::Duration::from_secs(600)
}

fn read(path: &Path) -> Result<Vec<Record>, Unusable> {
    let mut reader = Reader::open(path, far_deadline())?.expect("a file");
    let mut records = Vec::new();
    while let Some(record) = reader.next()? {
        records.push(record);
    }
    Ok(records)
}

#[test]
fn a_written_state_is_read_back_and_readable_by_this_user_only() {
    let (folder, path) = folder_and_path();
    assert!(Reader::open(&path, far_deadline()).unwrap().is_none());
    let records = records();
    for _twice in 0..2 {
        write(&path, &records);
        assert_eq!(read(&path).unwrap(), records);
    }
    let mode = fs::metadata(&path).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}

/// Records of a gate: with all fields, and without the optional ones.
const GATES: [&str; 2] = [
    r#"{"gate":{"origin":"a","next":1,"opens":2,"reserved":[[3,4]],"backoff":{"share":400000,"answers":20,"bad":9,"held":3,"paused":2,"permits":{"limit":5,"of":6,"answers":7,"bad":8}},"costs":[{"route":"/","selector":7,"method":"GET","quiet":[1],"busy":[2],"busy_in_row":3,"learned":{"micros":5,"quiet":true}}]}}"#,
    r#"{"gate":{"origin":"a","next":1,"opens":2,"costs":[{"route":"/","selector":7,"method":"GET"}]}}"#,
];

#[test]
fn the_state_file_format_of_a_gate_is_stable() {
    let [whole, short] = GATES.map(|form| serde_json::from_str::<Record>(form).unwrap());
    assert_eq!(serde_json::to_string(&whole).unwrap(), GATES[0]);
    // Earlier versions wrote `places`.
    let earlier = GATES[0].replace("permits", "places");
    assert_eq!(serde_json::from_str::<Record>(&earlier).unwrap(), whole);
    assert!(matches!(short, Record::Gate(gate) if gate.saved.backoff.is_none()));
}

#[test]
fn a_file_that_was_not_finished_leaves_the_one_before() {
    let (folder, path) = folder_and_path();
    write(&path, &records());
    let before = fs::read(&path).unwrap();
    let mut writer = Writer::begin(&path).unwrap();
    writer.write(&records()[0]).unwrap();
    drop(writer);
    assert_eq!(fs::read(&path).unwrap(), before);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn a_state_file_that_cannot_be_moved_leaves_no_temporary_file() {
    let (folder, path) = folder_and_path();
    let mut writer = Writer::begin(&path).unwrap();
    writer.write(&records()[0]).unwrap();
    fs::create_dir(&path).unwrap();
    assert!(writer.finish().is_err());
    let left: Vec<_> = fs::read_dir(folder.path()).unwrap().flatten().collect();
    let names: Vec<_> = left.iter().map(fs::DirEntry::file_name).collect();
    assert_eq!(names, ["drip.state"]);
}

#[test]
fn a_file_with_any_other_byte_or_length_is_ignored() {
    let (_folder, path) = folder_and_path();
    write(&path, &records());
    let whole = fs::read(&path).unwrap();
    assert!(read(&path).is_ok());
    for position in 0..whole.len() {
        for flip in [1, 0x20, 0x80, 0xff] {
            let mut broken = whole.clone();
            broken[position] ^= flip;
            fs::write(&path, &broken).unwrap();
            assert!(read(&path).is_err(), "byte {position} ^ {flip}");
        }
        fs::write(&path, &whole[..position]).unwrap();
        assert!(read(&path).is_err(), "{position} bytes");
    }
    fs::write(&path, [&whole[..], b"\n"].concat()).unwrap();
    assert!(matches!(read(&path), Err(Unusable::Length)));
}

#[test]
fn a_state_file_whose_check_takes_too_long_is_an_error() {
    let (_folder, path) = folder_and_path();
    write(&path, &records());
    let late = Reader::open(&path, Moment::default());
    assert!(matches!(late, Err(Unusable::Slow)));
}

#[test]
fn another_version_or_format_of_a_state_file_is_an_error() {
    let (folder, path) = folder_and_path();
    write(&path, &records());
    let text = fs::read_to_string(&path).unwrap();
    let why = |text: &str| {
        fs::write(&path, text).unwrap();
        read(&path).unwrap_err().to_string()
    };
    let version = "it has version 2, and this program reads version 1";
    assert_eq!(why(&text.replacen("0001", "0002", 1)), version);
    assert_eq!(why("[server]\n"), "it is not a state file");
    assert_eq!(why("drip-stamp"), "it is not a state file");
    for begin in ["", "d", "drip-state"] {
        assert_eq!(why(begin), "it is cut short, or longer than it was written");
    }
    let huge = format!("drip-state 0001 {:016x} 00000000\n", u64::MAX);
    assert_eq!(why(&huge), "it is cut short, or longer than it was written");
    assert!(Reader::open(folder.path(), far_deadline()).is_err());
    assert!(Reader::open(Path::new("/dev/null"), far_deadline()).is_err());
}

#[tokio::test]
async fn one_process_at_a_time_has_the_lock() {
    let (folder, path) = folder_and_path();
    let lock = Lock::try_take(&path).unwrap().expect("nobody has it");
    // Another handle is another holder, as in another process.
    assert!(Lock::try_take(&path).unwrap().is_none());
    let short = std::time::Duration::from_millis(20);
    assert!(Lock::take(&path, short).await.unwrap().is_none());
    let long = std::time::Duration::from_secs(60);
    let (taken, ()) = tokio::join!(Lock::take(&path, long), async { drop(lock) });
    assert!(taken.unwrap().is_some());
    assert!(Lock::try_take(&folder.path().join("missing/drip.state")).is_err());
}

fn accounts() -> impl Strategy<Value = Option<SavedAccount>> {
    let account = prop_oneof![
        any::<i128>().prop_map(|ahead| SavedAccount::LeakyBucket { ahead }),
        any::<i128>().prop_map(|ahead| SavedAccount::TokenBucket { ahead }),
        any::<u32>().prop_map(|count| SavedAccount::FixedWindow { count }),
        prop::collection::vec(any::<u64>(), 0..5)
            .prop_map(|ages| SavedAccount::SlidingWindowLog { ages }),
        any::<(u32, u32)>().prop_map(|(previous, current)| {
            SavedAccount::SlidingWindowCounter { previous, current }
        }),
    ];
    prop::option::of(account)
}

#[test]
fn a_key_whose_rate_cannot_be_read_is_skipped_alone() {
    for (rate, is_kept) in [("5r/s", true), ("none", true), ("5r/fortnight", false)] {
        let line = serde_json::to_string(&key_record(saved_key(b"a", "5r/s", None)));
        let line = line.unwrap().replace("5r/s", rate);
        let Record::Key(record) = serde_json::from_str(&line).unwrap() else {
            panic!("{line}");
        };
        assert_eq!(record.into_key(zone_rate()).is_some(), is_kept, "{line}");
    }
}

proptest! {
    #![proptest_config(testing::config())]

    #[test]
    fn any_key_reads_back_as_the_same(
        bytes in prop::collection::vec(any::<u8>(), 0..60),
        rate in prop::sample::select(vec!["10r/s", "0.000000001r/366d", "7r/250ms", "3.5r/m"]),
        account in accounts(),
    ) {
        let saved = saved_key(&bytes, rate, account);
        let line = serde_json::to_string(&key_record(saved.clone())).unwrap();
        let Record::Key(record) = serde_json::from_str(&line).unwrap() else {
            panic!("{line}");
        };
        prop_assert_eq!(record.into_key(zone_rate()), Some(saved), "{}", line);
    }
}
