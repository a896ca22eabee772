//! An HTTP back end that misbehaves on the wire, by a script for each path: error statuses, headers, silence, broken
//! connections and half an answer.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// What the back end does with one request.
#[derive(Debug, Clone)]
pub enum Misbehaviour {
    /// Answers with this status and these headers.
    Status(u16, Vec<(&'static str, String)>),
    /// Answers with a result.
    Answer,
    /// Reads the request and closes the connection.
    HangUp,
    /// Sends the beginning of an answer and closes the connection.
    Half,
    /// Answers nothing for this long.
    Silence(Duration),
}

/// A request that reached the back end.
#[derive(Debug, Clone)]
pub struct WireRequest {
    /// Method and path, such as `POST /pay`.
    pub place: String,
    /// Its idempotency key.
    pub key: Option<String>,
    /// When it arrived.
    pub at: Instant,
}

/// What the back end does, given a request's place and how many requests to that place came before it.
type Script = dyn Fn(&str, usize) -> Misbehaviour + Send + Sync;

#[derive(Default)]
struct Reached {
    requests: Vec<WireRequest>,
    counts: BTreeMap<String, usize>,
}

/// The server. Its thread ends with the test's process.
pub struct FaultyBackend {
    address: String,
    reached: Arc<Mutex<Reached>>,
}

impl FaultyBackend {
    pub fn start(script: impl Fn(&str, usize) -> Misbehaviour + Send + Sync + 'static) -> Self {
        Self::serve(Arc::new(script))
    }

    fn serve(script: Arc<Script>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let reached = Arc::<Mutex<Reached>>::default();
        let seen = reached.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let (seen, script) = (seen.clone(), script.clone());
                std::thread::spawn(move || serve(stream, &seen, &*script));
            }
        });
        Self { address, reached }
    }

    /// Its URL: `http://127.0.0.1:…`.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// The requests to a place so far, in order.
    pub fn requests(&self, place: &str) -> Vec<WireRequest> {
        let reached = self.reached.lock().unwrap();
        reached.requests.iter().filter(|request| request.place == place).cloned().collect()
    }
}

/// Reads one request and answers as the script says. A client that is gone is none of its business.
fn serve(stream: TcpStream, seen: &Mutex<Reached>, script: &Script) -> Option<()> {
    let mut reader = BufReader::new(stream.try_clone().ok()?);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if reader.read_line(&mut head).ok()? == 0 {
            return None;
        }
    }
    let header = |name: &str| {
        let lines = head.lines().filter_map(|line| line.split_once(':'));
        lines
            .filter(|(key, _)| key.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.trim().to_owned())
            .next()
    };
    let length = header("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
    reader.read_exact(&mut vec![0; length]).ok()?;
    let mut words = head.split_whitespace();
    let path = format!("{} {}", words.next()?, words.next()?);
    let place = path.split('?').next().unwrap_or_default().to_owned();
    let nth = {
        let mut reached = seen.lock().unwrap();
        let request =
            WireRequest { place: place.clone(), key: header("idempotency-key"), at: Instant::now() };
        reached.requests.push(request);
        let count = reached.counts.entry(place.clone()).or_default();
        *count += 1;
        *count - 1
    };
    misbehave(stream, &script(&place, nth)).ok()
}

fn misbehave(mut stream: TcpStream, how: &Misbehaviour) -> std::io::Result<()> {
    let body = r#"{"done":true,"text":"it was answered","code":"R-4711"}"#;
    let head = |status: u16, length: usize| {
        format!(
            "HTTP/1.1 {status} X\r\ncontent-type: application/json\r\nconnection: close\r\ncontent-length: {length}\r\n"
        )
    };
    match how {
        Misbehaviour::Status(status, headers) => {
            let mut text = head(*status, 2);
            for (name, value) in headers {
                text.push_str(&format!("{name}: {value}\r\n"));
            }
            stream.write_all(format!("{text}\r\n{{}}").as_bytes())
        }
        Misbehaviour::Answer => stream.write_all(format!("{}\r\n{body}", head(200, body.len())).as_bytes()),
        Misbehaviour::HangUp => stream.shutdown(std::net::Shutdown::Both),
        Misbehaviour::Half => {
            stream.write_all(format!("{}\r\n{}", head(200, body.len()), &body[..9]).as_bytes())?;
            stream.shutdown(std::net::Shutdown::Both)
        }
        Misbehaviour::Silence(time) => {
            stream.set_read_timeout(Some(*time))?;
            // Until the client gives up.
            stream.read(&mut [0]).map(|_| ())
        }
    }
}
