//! Drives a headless browser through chromedriver by the W3C `WebDriver` protocol.

use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use crate::programs::running::Running;
use crate::support::{Client, Gateway, PATIENCE, Part, free_address, now, quarter_alone};

pub struct Browser {
    driver: Driver,
    session: String,
    _part: Part,
}

struct Driver {
    address: std::net::SocketAddr,
    _process: Running,
}

/// Window and colour scheme of the page.
#[derive(Clone, Copy)]
pub struct Look {
    pub width: u32,
    pub height: u32,
    pub dark: bool,
}

pub const DESKTOP: Look = Look {
    width: 1280,
    height: 900,
    dark: false,
};

impl Browser {
    /// Opens the live page of `gateway` and waits until it is live.
    pub fn open(gateway: &Gateway, look: Look) -> Self {
        let browser = Self::start(&[]);
        browser.look(look);
        browser.go(&format!("http://{}/", gateway.site.admin));
        browser.wait_for("the page is live", "return says('#link') === 'live'");
        browser
    }

    /// Starts a browser with these additional arguments.
    pub fn start(more: &[&str]) -> Self {
        let part = quarter_alone();
        let driver = Driver::start();
        let arguments = [
            "--headless=new",
            // Turns off Chromium's own sandbox, which does not start for root.
            "--no-sandbox",
            "--disable-dev-shm-usage",
            "--disable-gpu",
            "--disable-background-networking",
        ];
        let arguments: Vec<_> = arguments.iter().chain(more).collect();
        let expected = json!({"capabilities": {"alwaysMatch": {
            "goog:loggingPrefs": {"browser": "ALL", "performance": "ALL"},
            "goog:chromeOptions": {"args": arguments},
        }}});
        let session = driver.ask("POST", "/session", &expected);
        let session = session["sessionId"].as_str().expect("a session").to_owned();
        Self {
            driver,
            session,
            _part: part,
        }
    }

    /// Opens a page, and waits until it and all that it needs has loaded or failed.
    pub fn go(&self, url: &str) {
        self.ask("POST", "/url", &json!({ "url": url }));
    }

    pub fn look(&self, look: Look) {
        let scheme = if look.dark { "dark" } else { "light" };
        let size = json!({
            "width": look.width, "height": look.height, "deviceScaleFactor": 1, "mobile": look.width < 500,
        });
        let media = json!({"features": [{"name": "prefers-color-scheme", "value": scheme}]});
        for (command, parameters) in [
            ("Emulation.setDeviceMetricsOverride", size),
            ("Emulation.setEmulatedMedia", media),
        ] {
            let body = json!({"cmd": command, "params": parameters});
            self.ask("POST", "/goog/cdp/execute", &body);
        }
    }

    /// Disables the scripts of all pages.
    pub fn disable_scripts(&self) {
        let body =
            json!({"cmd": "Emulation.setScriptExecutionDisabled", "params": {"value": true}});
        self.ask("POST", "/goog/cdp/execute", &body);
    }

    /// Runs a script in the page and returns its result. Fails if the page shows an alert.
    ///
    /// In the script, `says` returns the text of the first element of a selector, with blanks
    /// merged.
    pub fn run(&self, script: &str) -> Value {
        const HELP: &str = "const says = (what) =>
            document.querySelector(what)?.textContent.replace(/\\s+/g, ' ').trim() ?? '';";
        let body = json!({"script": format!("{HELP}\n{script}"), "args": []});
        self.ask("POST", "/execute/sync", &body)
    }

    /// Waits until a script returns true.
    pub fn wait_for(&self, what: &str, script: &str) {
        let deadline = now() + PATIENCE;
        while self.run(script) != json!(true) {
            if now() > deadline {
                let page = self.run("return document.body.innerText");
                panic!("waited {PATIENCE:?} in vain for this: {what}; the page says: {page}");
            }
            thread::sleep(Duration::from_millis(50));
        }
    }

    /// Waits until an expression is true.
    pub fn holds(&self, expression: impl AsRef<str>) {
        let expression = expression.as_ref();
        self.wait_for(expression, &format!("return {expression}"));
    }

    /// Waits until the first element of a selector has this text.
    pub fn reads(&self, selector: &str, text: &str) {
        self.holds(format!("says({selector:?}) === {text:?}"));
    }

    /// Waits until the text begins with `text`.
    pub fn begins(&self, selector: &str, text: &str) {
        self.holds(format!("says({selector:?}).startsWith({text:?})"));
    }

    /// Waits until the text contains `text`.
    pub fn has(&self, selector: &str, text: &str) {
        self.holds(format!("says({selector:?}).includes({text:?})"));
    }

    pub fn click(&self, selector: &str) {
        self.run(&format!("document.querySelector({selector:?}).click()"));
    }

    /// Returns the errors that the browser has logged.
    pub fn complaints(&self) -> Vec<Value> {
        self.log("browser")
    }

    /// Returns the addresses to which the page has sent requests.
    pub fn requests(&self) -> Vec<String> {
        let sent = self.events("Network.requestWillBeSent").into_iter();
        sent.filter_map(|event| event["request"]["url"].as_str().map(str::to_owned))
            .collect()
    }

    /// Returns the events of this kind since the last call.
    pub fn events(&self, method: &str) -> Vec<Value> {
        let events = self.log("performance").into_iter().map(|entry| {
            let message = entry["message"].as_str().expect("an event");
            let event: Value = serde_json::from_str(message).expect("an event in JSON");
            event["message"].clone()
        });
        let of_kind = events.filter(|event| event["method"] == method);
        of_kind.map(|event| event["params"].clone()).collect()
    }

    fn log(&self, kind: &str) -> Vec<Value> {
        let entries = self.ask("POST", "/se/log", &json!({ "type": kind }));
        entries.as_array().expect("entries").clone()
    }

    fn ask(&self, method: &str, path: &str, body: &Value) -> Value {
        let path = format!("/session/{}{path}", self.session);
        self.driver.ask(method, &path, body)
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let path = format!("/session/{}", self.session);
        // This also ends the browser. The test may be failing already.
        let _ended = self.driver.try_ask("DELETE", &path, &Value::Null);
    }
}

impl Driver {
    fn start() -> Self {
        let address = free_address();
        let mut driver = Command::new("chromedriver");
        driver.arg(format!("--port={}", address.port()));
        let process = Running::listening(driver.stderr(Stdio::null()), address);
        Self {
            address,
            _process: process,
        }
    }

    fn ask(&self, method: &str, path: &str, body: &Value) -> Value {
        match self.try_ask(method, path, body) {
            Ok(value) => value,
            Err(error) => panic!("{method} {path}: {error}"),
        }
    }

    fn try_ask(&self, method: &str, path: &str, body: &Value) -> Result<Value, String> {
        let body = if body.is_null() {
            String::new()
        } else {
            body.to_string()
        };
        let length = body.len();
        let mut client = Client::connect(self.address);
        client.send(
            format!("{method} {path} HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}", self.address)
                .as_bytes(),
        );
        let answer = client.try_answer().map_err(|error| error.to_string())?;
        let received: Value =
            serde_json::from_slice(&answer.body).map_err(|error| error.to_string())?;
        let value = received["value"].clone();
        if answer.status == 200 {
            Ok(value)
        } else {
            Err(value["message"].to_string())
        }
    }
}
