//! The page in a real browser: headless Chromium, driven over WebDriver, against the built daemon.

mod common;

use common::{CONFIG, Daemon, Guard, agent, skip, superko, wait_for};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader};
use std::process::{ChildStdout, Command, Stdio};
use tempfile::TempDir;

const TAB: &str = "\u{e004}";
const ENTER: &str = "\u{e007}";
const RIGHT: &str = "\u{e014}";

/// A window of a browser of its own; closed when dropped.
struct Browser {
    session: String,
    server: String,
    _driver: Guard,
    _output: BufReader<ChildStdout>,
    _profile: TempDir,
}

impl Browser {
    /// Opens the page of a daemon; `None` where there is no Chromium, with the reason told.
    fn open(daemon: &Daemon, test: &str) -> Option<Browser> {
        for program in ["chromium", "chromedriver"] {
            if Command::new(program).arg("--version").output().is_err() {
                skip(test, &format!("{program} cannot be run"));
                return None;
            }
        }
        let driver = Command::new("chromedriver").arg("--port=0").stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
        let mut driver = driver.expect("chromedriver starts");
        let mut output = BufReader::new(driver.stdout.take().expect("its output"));
        let driver = Guard(driver);
        let port: u16 = wait_for("port of chromedriver", 60, || {
            let mut line = String::new();
            assert!(output.read_line(&mut line).expect("its output") > 0, "chromedriver has ended");
            line.split_once("started successfully on port ")?.1.trim().trim_end_matches('.').parse().ok()
        });
        let profile = tempfile::tempdir().expect("a directory");
        let arguments = [
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-quic",
            "--no-first-run",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
            "--window-size=1280,900",
            &format!("--user-data-dir={}", profile.path().display()),
        ];
        let capabilities = json!({
            "goog:chromeOptions": {"args": arguments},
            "goog:loggingPrefs": {"browser": "ALL", "performance": "ALL"},
        });
        let server = daemon.url("");
        let mut browser =
            Browser { session: format!("http://127.0.0.1:{port}"), server, _driver: driver, _output: output, _profile: profile };
        let opened = browser.call("POST", "/session", &json!({"capabilities": {"alwaysMatch": capabilities}}));
        browser.session += &format!("/session/{}", opened["sessionId"].as_str().expect("a session"));
        browser.go("/");
        Some(browser)
    }

    fn try_call(&self, method: &str, path: &str, body: &Value) -> Result<Value, Value> {
        let request = ureq::http::Request::builder().method(method).uri(format!("{}{path}", self.session));
        let request = request.header("content-type", "application/json");
        let sent = if method == "GET" || method == "DELETE" { String::new() } else { body.to_string() };
        let mut answer = agent().run(request.body(sent).expect("a request")).expect("chromedriver answers");
        let mut json: Value = answer.body_mut().with_config().limit(64 << 20).read_json().expect("JSON");
        if answer.status().is_success() { Ok(json["value"].take()) } else { Err(json["value"].take()) }
    }

    fn call(&self, method: &str, path: &str, body: &Value) -> Value {
        self.try_call(method, path, body).unwrap_or_else(|error| panic!("{method} {path} {body}: {}: {}", error["error"], error["message"]))
    }

    fn go(&self, path: &str) {
        self.call("POST", "/url", &json!({"url": format!("{}{path}", self.server)}));
    }

    /// Opens an address as if it were typed into a new window.
    fn open_anew(&self, path: &str) {
        self.call("POST", "/url", &json!({"url": "about:blank"}));
        self.go(path);
    }

    fn js(&self, script: &str) -> Value {
        self.call("POST", "/execute/sync", &json!({"script": script, "args": []}))
    }

    fn until(&self, what: &str, condition: &str) {
        let shown = || self.js("return document.body.innerText");
        let end = std::time::Instant::now() + std::time::Duration::from_secs(60);
        while self.js(&format!("return Boolean({condition})")) != true {
            assert!(std::time::Instant::now() < end, "no {what}: {condition}; the page shows: {}", shown());
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
    }

    /// Waits for an element of which the text contains `words`.
    fn until_text(&self, selector: &str, words: &str) {
        let condition = format!(
            "[...document.querySelectorAll({})].some((e) => e.checkVisibility() && e.textContent.includes({}))",
            json!(selector),
            json!(words)
        );
        self.until(words, &condition);
    }

    /// The element's name to WebDriver; waits until it is there.
    fn element(&self, selector: &str) -> String {
        let (using, value) = match selector.strip_prefix("//") {
            Some(_) => ("xpath", selector),
            None => ("css selector", selector),
        };
        let found = wait_for(selector, 60, || self.try_call("POST", "/element", &json!({"using": using, "value": value})).ok());
        found.as_object().and_then(|fields| fields.values().next()?.as_str()).expect("an element").to_owned()
    }

    fn click(&self, selector: &str) {
        // A view that is just being drawn may put something in the way, or the element into the bin.
        wait_for(&format!("click on {selector}"), 30, || {
            let element = self.element(selector);
            self.try_call("POST", &format!("/element/{element}/click"), &json!({})).ok()
        });
    }

    /// Replaces what a field holds and leaves it.
    fn fill(&self, selector: &str, text: &str) {
        let element = self.element(selector);
        self.call("POST", &format!("/element/{element}/clear"), &json!({}));
        self.call("POST", &format!("/element/{element}/value"), &json!({"text": format!("{text}{TAB}")}));
    }

    /// Presses keys, one after another, on whatever has the focus.
    fn press(&self, keys: &[&str]) {
        let strokes = |key: &&str| [json!({"type": "keyDown", "value": key}), json!({"type": "keyUp", "value": key})];
        let actions: Vec<Value> = keys.iter().flat_map(strokes).collect();
        self.call("POST", "/actions", &json!({"actions": [{"type": "key", "id": "keys", "actions": actions}]}));
    }

    fn hover(&self, selector: &str) {
        let origin = json!({"element-6066-11e4-a52e-4f735466cecf": self.element(selector)});
        let moved = json!([{"type": "pointerMove", "duration": 0, "origin": origin, "x": 0, "y": 0}]);
        let mouse = json!({"type": "pointer", "id": "mouse", "parameters": {"pointerType": "mouse"}, "actions": moved});
        self.call("POST", "/actions", &json!({"actions": [mouse]}));
    }

    fn resize(&self, width: u32, height: u32) {
        let metrics = json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false});
        self.call("POST", "/goog/cdp/execute", &json!({"cmd": "Emulation.setDeviceMetricsOverride", "params": metrics}));
    }

    fn address(&self) -> String {
        self.call("GET", "/url", &Value::Null).as_str().expect("an address").to_owned()
    }

    /// What every view must keep to: controls with names, text that can be read in both themes, no scrolling sideways on a phone.
    fn assert_is_usable(&self, view: &str) {
        let nameless = self.js(
            "return [...document.querySelectorAll('input, select, textarea, button, a, [role=button]')].filter((e) => e.checkVisibility() && \
             !(e.getAttribute('aria-label') || [...(e.labels ?? [])].some((l) => l.textContent.trim()) || \
               (!['INPUT', 'SELECT', 'TEXTAREA'].includes(e.tagName) && e.textContent.trim()))).map((e) => e.outerHTML)",
        );
        assert_eq!(nameless, json!([]), "{view}: controls without a name");
        for theme in ["light", "dark"] {
            self.js(&format!("document.documentElement.dataset.theme = '{theme}'"));
            assert_eq!(self.js(CONTRAST), json!([]), "{view}: text that is hard to read in the {theme} theme");
        }
        for (width, height) in [(390, 844), (320, 640)] {
            self.resize(width, height);
            let wide = self.js("return document.documentElement.scrollWidth");
            assert!(wide.as_u64() <= Some(width.into()), "{view}: {wide} pixels wide in a window of {width}");
        }
        self.resize(1280, 900);
        self.js("document.documentElement.dataset.theme = 'light'");
    }

    /// The page asked nobody but its own server, and the console has nothing to complain about.
    fn assert_is_quiet(&self) {
        let log = |kind| self.call("POST", "/se/log", &json!({"type": kind}));
        for entry in log("performance").as_array().expect("entries") {
            let event: Value = serde_json::from_str(entry["message"].as_str().expect("text")).expect("JSON");
            let sent = &event["message"];
            let url = sent["params"]["request"]["url"].as_str().unwrap_or_default();
            // The browser's own start page asks for this and that.
            let is_ours = sent["params"]["documentURL"].as_str().is_some_and(|page| page.starts_with(&self.server));
            let is_request = sent["method"] == "Network.requestWillBeSent";
            assert!(!is_request || !is_ours || url.starts_with(&self.server), "a request to {url}");
        }
        for entry in log("browser").as_array().expect("entries") {
            let message = entry["message"].as_str().expect("text");
            assert!(entry["level"] != "SEVERE" && entry["level"] != "WARNING", "{message}");
        }
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // The driver takes the browser with it only if it is asked.
        let _ = self.try_call("DELETE", "", &Value::Null);
    }
}

/// Visible texts with less contrast than WCAG 2.2 AA asks for (1.4.3); controls that rest are excepted there.
const CONTRAST: &str = "
const channels = (color) => color.match(/[\\d.]+/g).map(Number);
const light = (color) => {
  const [r, g, b] = channels(color).map((c) => (c / 255 <= 0.04045 ? c / 255 / 12.92 : ((c / 255 + 0.055) / 1.055) ** 2.4));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
};
const behind = (element) => {
  for (let e = element; e !== null; e = e.parentElement) {
    const color = getComputedStyle(e).backgroundColor;
    if ((channels(color)[3] ?? 1) === 1) return color;
  }
  return 'rgb(255, 255, 255)';
};
document.getAnimations().forEach((animation) => animation.finish());
return [...document.querySelectorAll('body *:not(svg, svg *)')].filter((e) => e.checkVisibility() && !e.disabled && !e.closest(':disabled, .hidden, .skip') &&
  [...e.childNodes].some((n) => n.nodeType === 3 && n.data.trim())).flatMap((e) => {
  const style = getComputedStyle(e);
  const [one, two] = [light(style.color), light(behind(e))].sort((a, b) => b - a);
  const ratio = (one + 0.05) / (two + 0.05);
  const size = parseFloat(style.fontSize);
  const large = size >= 24 || (size >= 18.66 && style.fontWeight >= 700);
  return ratio >= (large ? 3 : 4.5) ? [] : [`${e.textContent.trim().slice(0, 40)}: ${ratio.toFixed(2)}`];
});";

#[test]
fn a_position_is_set_up_proven_and_walked_through() {
    let dir = tempfile::tempdir().expect("a directory");
    let daemon = Daemon::start(dir.path());
    let Some(browser) = Browser::open(&daemon, "a_position_is_set_up_proven_and_walked_through") else { return };
    browser.until_text(".empty", "No jobs yet");
    browser.assert_is_usable("the empty queue");

    // Black in the middle of 3x3 and White to move, set up by clicking.
    browser.click("//nav/a[.='New position']");
    browser.fill("//label[.='Board']/../input", "3x3");
    browser.until("the smaller board", "document.querySelectorAll('.setup .point').length === 9");
    browser.click("//label[.='Black stones']");
    browser.click(".setup [data-vertex=B2]");
    browser.click("//label[.='White']");
    browser.click("#kind-solve");
    browser.until_text(".setup .hover", "White to move");
    // What the server has against a field stands at the field.
    browser.fill("//label[.='Komi']/../input", "8");
    browser.until_text(".field:has([aria-invalid]) .error", "komi 8 is not valid");
    browser.assert_is_usable("the form with an error");
    browser.fill("//label[.='Komi']/../input", "8.5");
    browser.until("the error to go", "document.querySelector('[aria-invalid]') === null");
    browser.click("//button[.='Submit']");

    browser.until_text(".head .state", "succeeded");
    browser.until_text(".verdict", "Black wins");
    browser.until_text(".proof", "accepted by the checker");
    browser.click("//button[.='Verify']");
    browser.until_text(".message", "proof 1-1: accepted");
    // The certificate arrives under its name, and is one.
    let downloads = json!({"behavior": "allow", "downloadPath": dir.path()});
    browser.call("POST", "/goog/cdp/execute", &json!({"cmd": "Browser.setDownloadBehavior", "params": downloads}));
    browser.click("//button[.='Download certificate']");
    let file = dir.path().join("3x3_8.5_black_1-1.sgc");
    wait_for("certificate", 60, || file.exists().then_some(()));
    let checked = superko(&["check", file.to_str().expect("UTF-8")]);
    assert!(checked.status.success() && String::from_utf8_lossy(&checked.stdout).contains("Black wins 3x3 at komi 8.5"), "{checked:?}");
    browser.until_text(".player .caption", "Start, white to move");
    browser.click("button[aria-label='One move on']");
    browser.until_text(".player .caption", "Move 1 of");
    browser.until("the line's first stone", "document.querySelectorAll('.player .stone').length === 2");
    browser.assert_is_usable("a job");

    // The explorer: all of White's moves lose, and what refutes each is shown.
    browser.click("//a[.='Explore this proof']");
    browser.until_text(".explore .verdict", "White to move and loses at komi 8.5");
    browser.until("eight lost moves", "document.querySelectorAll('.explore .board .mark.loss').length === 8");
    browser.until_text(".verdicts .chip", "A1 →");
    let chip =
        browser.js("return [...document.querySelectorAll('.verdicts .chip')].find((e) => e.textContent.startsWith('A1')).textContent");
    let reply = chip.as_str().and_then(|text| text.rsplit_once(' ')).expect("a reply").1.to_owned();
    browser.hover(".explore [data-vertex=A1]");
    browser.until_text(".explore .hover", &format!("A1 loses, margin B+9: Black answers {reply}"));
    browser.until("both stones in outline", "document.querySelectorAll('.explore .ghost').length === 2");
    let label = format!("A1, empty, loses, margin B+9: Black answers {reply}.");
    assert_eq!(browser.js("return document.querySelector('.explore [data-vertex=A1]').getAttribute('aria-label')"), json!(label));
    browser.assert_is_usable("the explorer");
    browser.click(".explore [data-vertex=A1]");
    browser.until_text(".explore .verdict", "Black to move and wins at komi 8.5");
    browser.until("the refutation", &format!("document.querySelector('.explore [data-vertex={reply}] .mark.win') !== null"));

    // The line of proven moves, and the ways back.
    browser.until_text(".columns .note", "Two passes end the game: black wins");
    let first = browser.js("return document.querySelector('[aria-label=\"Principal variation\"] a').textContent");
    browser.click("ol[aria-label='Principal variation'] a");
    let second_move = first.as_str().expect("a move").replacen("1 ", "2 ", 1);
    browser.until("the second move", &format!("document.querySelector('.trail [aria-current]').textContent === '{second_move}'"));
    browser.click("button[aria-label='Back']");
    browser.until("one move back", "document.querySelector('.trail [aria-current]').textContent === '1 A1'");
    browser.click("button[aria-label='Forward']");
    browser.until("it again", &format!("document.querySelector('.trail [aria-current]').textContent === '{second_move}'"));
    browser.call("POST", "/back", &json!({}));
    browser.until("the browser's own way back", "document.querySelector('.trail [aria-current]').textContent === '1 A1'");
    browser.until_text(".explore .proof", "Black wins at komi 8.5");
    // The address alone tells another reader all of it.
    let address = browser.address();
    let path = address.strip_prefix(&browser.server).expect("an address of the daemon");
    browser.open_anew(path);
    browser.until_text(".explore .verdict", "Black to move and wins at komi 8.5");
    assert_eq!(browser.js("return document.querySelectorAll('.explore .stone').length"), 2);
    browser.click("button[aria-label='First position']");
    browser.until_text(".explore .verdict", "White to move and loses");

    // By keyboard alone: to the board, one point on, play it.
    browser.js("document.querySelector('.explore [tabindex=\"0\"]').focus()");
    browser.press(&[RIGHT, ENTER]);
    browser.until_text(".explore .verdict", "Black to move and wins");
    browser.until("the focus where it was", "document.activeElement.dataset.vertex === 'B3'");

    // A move that superko bans is shown as such, with the reason.
    browser.open_anew("/#/explore?board=1x2&komi=0.5&moves=B1.A1");
    browser.until("the banned point", "document.querySelector('.explore [data-vertex=B1] .mark.banned') !== null");
    browser.until_text(".verdicts", "recreates the board after move 1");
    browser.hover(".explore [data-vertex=B1]");
    browser.until_text(".explore .hover", "B1 is not legal: ");
    // Where nothing is proven, nothing is claimed.
    browser.open_anew("/#/explore?board=3x4&komi=0.5");
    browser.until_text(".explore .verdict", "not proven");
    browser.until_text(".columns .note", "Nothing is proven here");
    browser.open_anew("/#/explore?board=9x9&komi=0.5");
    browser.until_text(".error", "9x9");

    // The chosen theme lasts.
    let ground = "return getComputedStyle(document.body).backgroundColor";
    browser.open_anew("/");
    browser.until_text(".item a", "3x3");
    let light = browser.js(ground);
    browser.click("#theme");
    let dark = browser.js(ground);
    browser.open_anew("/#/new");
    browser.until_text(".setup .hover", "Black to move");
    assert!(light != dark && browser.js(ground) == dark, "{light} {dark}");
    browser.assert_is_quiet();
    // From here on the console tells of answers with 404.
    for what in ["job", "campaign"] {
        browser.open_anew(&format!("/#/{what}/77"));
        browser.until_text(".empty", &format!("There is no {what} 77."));
    }
}

#[test]
fn a_campaign_finds_a_value_and_jobs_are_put_aside() {
    let dir = tempfile::tempdir().expect("a directory");
    let daemon = Daemon::start(dir.path());
    let Some(browser) = Browser::open(&daemon, "a_campaign_finds_a_value_and_jobs_are_put_aside") else { return };
    browser.until_text("#mode", "live");
    browser.until_text(".empty", "No campaigns yet");
    browser.click("//nav/a[.='New position']");
    browser.fill("//label[.='Board']/../input", "3x3");
    browser.click("#kind-campaign");
    browser.click("//option[.='1']");
    browser.assert_is_usable("the form of a campaign");
    browser.click("//button[.='Submit']");
    browser.until_text(".head .state", "succeeded");
    browser.until_text(".verdict", "Value B+9, best with B2");
    browser.until("the best move on the board", "document.querySelector('[data-vertex=B2] .mark.win') !== null");
    browser.until_text(".proof", "Black wins at komi 8.5");
    browser.assert_is_usable("a campaign");
    browser.click("//button[.='Its jobs in the queue']");
    browser.until("its jobs", "document.querySelectorAll('section:last-of-type .item').length > 1");
    browser.assert_is_usable("a queue with a campaign");

    let id = daemon.submit(&json!({"kind": "value", "board": "4x5"}));
    browser.open_anew(&format!("/#/job/{id}"));
    browser.until_text(".head .state", "running");
    browser.until_text(".key", "disproof number: now");
    browser.until_text(".key", "expansions/s: now");
    browser.fill(".head input", "5");
    browser.until_text(".message", &format!("job {id}: priority 5"));
    assert_eq!(daemon.job(id)["priority"], 5);
    browser.click("//button[starts-with(., 'Pause')]");
    browser.until_text(".head .state", "paused");
    browser.assert_is_usable("a job that was put aside");
    daemon.wait_until(id, "paused");
    browser.click("//button[starts-with(., 'Resume')]");
    browser.until_text(".head .state", "running");
    assert_eq!(daemon.cancel(id).0, 200);
    // Nobody asked: the server told.
    browser.until_text(".head .state", "cancelled");
    browser.assert_is_quiet();
}

#[test]
fn the_queue_shows_what_runs_and_stops_it() {
    let dir = tempfile::tempdir().expect("a directory");
    let mut daemon = Daemon::start(dir.path());
    let Some(browser) = Browser::open(&daemon, "the_queue_shows_what_runs_and_stops_it") else { return };
    let id = daemon.submit(&json!({"kind": "value", "board": "4x5", "label": "<b>long & bold</b>"}));
    let waiting = daemon.submit(&json!({"kind": "solve", "board": "2x2", "komi": 0.5}));
    browser.until_text(".item .what a", &format!("{id} · Value of 4x5"));
    browser.until_text(".item .note", "<b>long & bold</b>");
    browser.until_text(".item .state", "running");
    // Counts go on without a reload.
    let numbers = "document.querySelector('.item:has(.state.running) .numbers')?.textContent";
    browser.until("counts", &format!("{numbers}?.includes('/s')"));
    let seen = browser.js(&format!("return {numbers}"));
    browser.until("new counts", &format!("{numbers} !== {seen}"));
    browser.assert_is_usable("the queue");
    browser.click("//a[contains(., 'Value of 4x5')]");
    browser.until(
        "a chart",
        "document.querySelector('.chart svg[role=img]')?.getAttribute('aria-label').startsWith('Expansions per second from')",
    );
    browser.until_text(".key", "hit rate: now");
    browser.assert_is_usable("a running job");

    browser.click("//nav/a[.='Queue']");
    browser.click("//li[contains(., 'Value of 4x5')]//button[starts-with(., 'Cancel')]");
    browser.until_text("dialog", &format!("Cancel job {id}?"));
    browser.click("//dialog//button[.='Keep it']");
    assert_eq!(daemon.job(id)["state"], "running");
    browser.click("//li[contains(., 'Value of 4x5')]//button[starts-with(., 'Cancel')]");
    browser.click("//dialog//button[.='Cancel']");
    browser.until_text(".item .state", "cancelled");
    daemon.wait_until(id, "cancelled");
    daemon.wait_until(waiting, "succeeded");

    let rows = "document.querySelectorAll('section:last-of-type .item').length";
    browser.until("both jobs", &format!("{rows} === 2"));
    browser.click("//option[.='succeeded']");
    browser.until("the one that succeeded", &format!("{rows} === 1"));
    browser.click("//option[.='failed']");
    browser.until_text(".empty", "No job is like that");
    browser.assert_is_quiet();

    daemon.terminate();
    daemon.exit_status(60);
    browser.until_text("#mode", "server not reachable");
}

#[test]
fn a_server_with_tokens_is_asked_with_one() {
    let dir = tempfile::tempdir().expect("a directory");
    let token = |name: &str, scopes: &str| {
        let made = String::from_utf8(superko(&["token", "new", "--name", name, "--scopes", scopes]).stdout).expect("UTF-8");
        let (token, line) = made.trim().split_once('\n').expect("a token and its line");
        (token.to_owned(), line.to_owned())
    };
    let (reader, submitter) = (token("r", "read"), token("s", "submit"));
    let file = dir.path().join("tokens");
    std::fs::write(&file, format!("{}\n{}\n", reader.1, submitter.1)).expect("written");
    let daemon = Daemon::start_with(dir.path(), &format!("{CONFIG}tokens_file = {file:?}\n"));
    let Some(browser) = Browser::open(&daemon, "a_server_with_tokens_is_asked_with_one") else { return };
    browser.until_text("dialog label", "wants an access token");
    browser.assert_is_usable("the question for a token");
    browser.fill("#token", "superko_0123");
    browser.click("//dialog//button[.='Use it']");
    browser.until_text("dialog label", "none of this server's");
    browser.fill("#token", &reader.0);
    browser.click("//dialog//button[.='Use it']");
    browser.until_text(".empty", "No jobs yet");
    // What the token does not allow is said, and nothing happens.
    browser.click("//nav/a[.='New position']");
    browser.fill("//label[.='Board']/../input", "2x2");
    browser.click("//button[.='Submit']");
    browser.until_text("body", "it needs the scope submit");
    browser.js("sessionStorage.setItem('token', 'superko_0123')");
    browser.open_anew("/");
    browser.fill("#token", &submitter.0);
    browser.click("//dialog//button[.='Use it']");
    browser.until_text(".empty", "No jobs yet");
    browser.click("//nav/a[.='New position']");
    browser.fill("//label[.='Board']/../input", "2x2");
    browser.click("//button[.='Submit']");
    browser.until_text(".head .state", "succeeded");
    // The description of the API needs none.
    browser.click("//nav/a[.='API']");
    browser.until_text("h1", "Superko API");
    browser.click("//a[.='Queue and boards']");
    browser.until_text(".item .state", "succeeded");
}
