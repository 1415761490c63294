//! As much of HTTP/1.1 as the control port needs: one request after the other, bodies with a length or in chunks, and
//! answers in JSON.
//!
//! Every HTTP client in a standard library speaks this. There is no TLS and no upgrade; whatever is longer than the
//! limits is refused.

use std::collections::BTreeMap;
use std::io;

use bytes::{Buf, Bytes, BytesMut};
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

/// The longest request line with its headers.
const MAX_HEAD: usize = 16 * 1024;
/// The longest body.
const MAX_BODY: usize = 1024 * 1024;
/// The most headers behind a body in chunks.
const MAX_TRAILERS: usize = 100;

/// A request.
#[derive(Debug)]
pub(super) struct Request {
    /// How a path is asked: GET for HEAD as well.
    pub(super) method: String,
    /// Whether only the head of the answer is wanted.
    pub(super) is_head: bool,
    /// The parts of the path, decoded.
    pub(super) path: Vec<String>,
    pub(super) query: BTreeMap<String, String>,
    pub(super) body: Bytes,
    /// Whether the client wants to send another one.
    pub(super) is_kept: bool,
}

/// An answer.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Reply {
    pub(super) status: u16,
    pub(super) body: Value,
}

/// What the head of a request says.
struct Head {
    method: String,
    target: String,
    length: usize,
    is_chunked: bool,
    is_kept: bool,
    wants_word: bool,
}

/// Why there is no request.
enum Stop {
    Ended,
    Broken(io::Error),
    Refused(Reply),
}

impl From<io::Error> for Stop {
    fn from(error: io::Error) -> Self {
        Self::Broken(error)
    }
}

impl Reply {
    pub(super) fn ok(body: Value) -> Self {
        Self { status: 200, body }
    }

    pub(super) fn error(status: u16, reason: impl Into<String>) -> Self {
        Self { status, body: json!({ "error": reason.into() }) }
    }

    fn to_bytes(&self, is_kept: bool, with_body: bool) -> Vec<u8> {
        let reason = match self.status {
            200 => "OK",
            201 => "Created",
            400 => "Bad Request",
            404 => "Not Found",
            405 => "Method Not Allowed",
            503 => "Service Unavailable",
            408 => "Request Timeout",
            409 => "Conflict",
            413 => "Content Too Large",
            431 => "Request Header Fields Too Large",
            _ => "Not Implemented",
        };
        let body = format!("{:#}\n", self.body);
        let connection = if is_kept { "keep-alive" } else { "close" };
        let (status, length) = (self.status, body.len());
        let head = format!(
            "HTTP/1.1 {status} {reason}\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\
             Connection: {connection}\r\n\r\n"
        );
        if with_body { [head.into_bytes(), body.into_bytes()].concat() } else { head.into_bytes() }
    }
}

/// Writes an answer.
pub(super) async fn write(stream: &mut (impl AsyncWrite + Unpin), reply: &Reply, is_kept: bool) -> io::Result<()> {
    stream.write_all(&reply.to_bytes(is_kept, true)).await
}

/// Writes the head of an answer alone. It tells the length of the body that GET would bring.
pub(super) async fn write_head(stream: &mut (impl AsyncWrite + Unpin), reply: &Reply, is_kept: bool) -> io::Result<()> {
    stream.write_all(&reply.to_bytes(is_kept, false)).await
}

/// Reads a request: nothing at the end of the stream, an answer if it is none that we take.
pub(super) async fn read(
    stream: &mut (impl AsyncRead + AsyncWrite + Unpin),
    buffer: &mut BytesMut,
) -> io::Result<Option<Result<Request, Reply>>> {
    match request(stream, buffer).await {
        Ok(request) => Ok(Some(Ok(request))),
        Err(Stop::Refused(reply)) => Ok(Some(Err(reply))),
        Err(Stop::Ended) => Ok(None),
        Err(Stop::Broken(error)) => Err(error),
    }
}

async fn request(stream: &mut (impl AsyncRead + AsyncWrite + Unpin), buffer: &mut BytesMut) -> Result<Request, Stop> {
    let head = parse(&until(stream, buffer, b"\r\n\r\n").await?).map_err(Stop::Refused)?;
    if head.wants_word && (head.is_chunked || buffer.len() < head.length) {
        stream.write_all(b"HTTP/1.1 100 Continue\r\n\r\n").await?;
    }
    let body = if head.is_chunked {
        chunks(stream, buffer).await?
    } else {
        fill(stream, buffer, head.length).await?;
        buffer.split_to(head.length).freeze()
    };
    let (path, query) = address(&head.target).map_err(Stop::Refused)?;
    let is_head = head.method == "HEAD";
    let method = if is_head { "GET".to_owned() } else { head.method };
    Ok(Request { method, is_head, path, query, body, is_kept: head.is_kept })
}

/// Takes an address apart. What could only be a mistake is refused: `/rules/` with an id that is empty would mean all.
fn address(target: &str) -> Result<(Vec<String>, BTreeMap<String, String>), Reply> {
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let path = path.strip_prefix('/').ok_or_else(|| Reply::error(400, "a path begins with /"))?;
    let parts = path.split('/').filter(|_| !path.is_empty()).map(decode).collect::<Result<Vec<_>, _>>()?;
    if parts.iter().any(String::is_empty) {
        return Err(Reply::error(400, format!("the path /{path} has an empty part")));
    }
    let mut values = BTreeMap::new();
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        // As HTML's forms have it, and with them the clients in standard libraries: a plus is a space.
        let pair = pair.replace('+', " ");
        let (name, value) = pair.split_once('=').unwrap_or((&pair, ""));
        let name = decode(name)?;
        if values.insert(name.clone(), decode(value)?).is_some() {
            return Err(Reply::error(400, format!("the parameter `{name}` is there twice")));
        }
    }
    Ok((parts, values))
}

/// Reads a body that comes in chunks, as from a client that does not know its length when it begins.
async fn chunks(stream: &mut (impl AsyncRead + Unpin), buffer: &mut BytesMut) -> Result<Bytes, Stop> {
    let wrong = || Stop::Refused(Reply::error(400, "a chunk is: its length in hexadecimal digits, a line end, itself"));
    let mut body = BytesMut::new();
    loop {
        let line = until(stream, buffer, b"\r\n").await?;
        let size = std::str::from_utf8(&line).ok().and_then(|line| line.split(';').next());
        let size = size.and_then(|size| usize::from_str_radix(size.trim(), 16).ok()).ok_or_else(wrong)?;
        if size == 0 {
            break;
        }
        if size > MAX_BODY - body.len() {
            return Err(Stop::Refused(too_long()));
        }
        fill(stream, buffer, size + 2).await?;
        body.extend_from_slice(&buffer.split_to(size));
        if !buffer.starts_with(b"\r\n") {
            return Err(wrong());
        }
        buffer.advance(2);
    }
    for _ in 0..=MAX_TRAILERS {
        if until(stream, buffer, b"\r\n").await?.is_empty() {
            return Ok(body.freeze());
        }
    }
    Err(Stop::Refused(Reply::error(431, format!("there are at most {MAX_TRAILERS} trailers"))))
}

/// Reads until there are so many bytes.
async fn fill(stream: &mut (impl AsyncRead + Unpin), buffer: &mut BytesMut, length: usize) -> Result<(), Stop> {
    while buffer.len() < length {
        if stream.read_buf(buffer).await? == 0 {
            return Err(Stop::Ended);
        }
    }
    Ok(())
}

/// Reads what is in front of a mark, and passes over the mark.
async fn until(stream: &mut (impl AsyncRead + Unpin), buffer: &mut BytesMut, mark: &[u8]) -> Result<BytesMut, Stop> {
    loop {
        if let Some(end) = buffer.windows(mark.len()).position(|window| window == mark) {
            let before = buffer.split_to(end);
            buffer.advance(mark.len());
            return Ok(before);
        }
        if buffer.len() > MAX_HEAD {
            return Err(Stop::Refused(Reply::error(431, format!("a head has at most {MAX_HEAD} bytes"))));
        }
        fill(stream, buffer, buffer.len() + 1).await?;
    }
}

fn parse(head: &[u8]) -> Result<Head, Reply> {
    let wrong = |reason: &str| Reply::error(400, reason);
    let text = std::str::from_utf8(head).map_err(|_| wrong("a head is text"))?;
    let mut lines = text.split("\r\n");
    let mut words = lines.next().unwrap_or("").split(' ');
    let (Some(method), Some(target), Some(version), None) = (words.next(), words.next(), words.next(), words.next())
    else {
        return Err(wrong("the first line is: METHOD /path HTTP/1.1"));
    };
    if !version.starts_with("HTTP/1.") {
        return Err(wrong("this is HTTP/1.1"));
    }
    let mut head = Head {
        method: method.to_owned(),
        target: target.to_owned(),
        length: 0,
        is_chunked: false,
        is_kept: version != "HTTP/1.0",
        wants_word: false,
    };
    for line in lines {
        let (name, value) = line.split_once(':').ok_or_else(|| wrong("a header is: Name: value"))?;
        let value = value.trim();
        match name.to_ascii_lowercase().as_str() {
            "content-length" => {
                let length = value.parse().ok().filter(|_| value.bytes().all(|byte| byte.is_ascii_digit()));
                head.length = length.ok_or_else(|| wrong("Content-Length is a number"))?;
            }
            "transfer-encoding" if value.eq_ignore_ascii_case("chunked") => head.is_chunked = true,
            "transfer-encoding" => return Err(Reply::error(501, "a body comes in one piece, or chunked and as it is")),
            "connection" if value.eq_ignore_ascii_case("close") => head.is_kept = false,
            "expect" => head.wants_word = value.eq_ignore_ascii_case("100-continue"),
            _ => {}
        }
    }
    if head.length > MAX_BODY {
        return Err(too_long());
    }
    Ok(head)
}

fn too_long() -> Reply {
    Reply::error(413, format!("a body has at most {MAX_BODY} bytes"))
}

/// Takes the percent signs out of a part of an address.
///
/// # Errors
///
/// The answer to what no text is written as: another text would be looked for, and not be found.
fn decode(text: &str) -> Result<String, Reply> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        rest = tail;
        let byte = if *first == b'%' {
            let escaped = tail.split_at_checked(2).and_then(|(digits, tail)| Some((hexadecimal(digits)?, tail)));
            let wrong =
                || Reply::error(400, format!("`{text}` has a % without two hexadecimal digits: % itself is %25"));
            let (byte, tail) = escaped.ok_or_else(wrong)?;
            rest = tail;
            byte
        } else {
            *first
        };
        bytes.push(byte);
    }
    String::from_utf8(bytes).map_err(|_| Reply::error(400, format!("`{text}` is no UTF-8")))
}

/// The number that digits are: nothing but digits, which is more than Rust asks for.
fn hexadecimal(digits: &[u8]) -> Option<u8> {
    let is_number = digits.iter().all(u8::is_ascii_hexdigit);
    let digits = std::str::from_utf8(digits).ok().filter(|_| is_number)?;
    u8::from_str_radix(digits, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn request(text: &str) -> Option<Result<Request, Reply>> {
        let (mut ours, mut theirs) = tokio::io::duplex(1 << 20);
        theirs.write_all(text.as_bytes()).await.expect("there is room");
        drop(theirs);
        read(&mut ours, &mut BytesMut::new()).await.expect("a stream in memory")
    }

    #[tokio::test]
    async fn request_is_taken_apart() {
        let text = "POST /groups/a%2Fb/x?n=1&s=a%20b+%2B HTTP/1.1\r\nhost: x\r\ncontent-LENGTH: 2\r\n\r\n{}rest";
        let request = request(text).await.expect("a request").expect("a legal one");

        assert_eq!((request.method.as_str(), request.path.join(" ")), ("POST", "groups a/b x".to_owned()));
        assert_eq!((request.query["n"].as_str(), request.query["s"].as_str()), ("1", "a b +"));
        assert_eq!((&request.body[..], request.is_kept), (&b"{}"[..], true));
    }

    /// As .NET's `JsonContent` sends it.
    #[tokio::test]
    async fn chunks_are_put_together() {
        let text = "POST /rules HTTP/1.1\r\nTransfer-Encoding: Chunked\r\n\r\n\
                    3\r\n{\"a\r\nB;x=y\r\n\": \"......\"\r\n1\r\n}\r\n0\r\nDigest: none\r\n\r\nGET / HTTP/1.1\r\n\r\n";
        let (mut ours, mut theirs) = tokio::io::duplex(1 << 20);
        theirs.write_all(text.as_bytes()).await.expect("there is room");
        let mut buffer = BytesMut::new();

        let first = read(&mut ours, &mut buffer).await.expect("a stream").expect("a request").expect("a legal one");
        let second = read(&mut ours, &mut buffer).await.expect("a stream").expect("a request").expect("a legal one");

        assert_eq!(&first.body[..], b"{\"a\": \"......\"}");
        assert_eq!((second.method.as_str(), second.body.len()), ("GET", 0));
    }

    #[tokio::test]
    async fn what_is_too_long_or_no_request_is_refused() {
        let long = format!("GET /{} HTTP/1.1\r\n", "x".repeat(MAX_HEAD));
        let cases = [
            (long.as_str(), 431),
            ("GET / HTTP/2\r\n\r\n", 400),
            ("hello\r\n\r\n", 400),
            ("GET / HTTP/1.1\r\nbad\r\n\r\n", 400),
            ("POST / HTTP/1.1\r\nContent-Length: 99999999\r\n\r\n", 413),
            ("POST / HTTP/1.1\r\nContent-Length: -1\r\n\r\n", 400),
            ("POST / HTTP/1.1\r\nContent-Length: +1\r\n\r\nx", 400),
            ("GET /groups/%ff HTTP/1.1\r\n\r\n", 400),
            ("GET /groups/%zz HTTP/1.1\r\n\r\n", 400),
            ("GET /groups/%+1 HTTP/1.1\r\n\r\n", 400),
            ("GET /groups/100% HTTP/1.1\r\n\r\n", 400),
            ("GET /history?client_id=%ff HTTP/1.1\r\n\r\n", 400),
            ("GET /history?limit=1&limit=2 HTTP/1.1\r\n\r\n", 400),
            ("DELETE /rules/ HTTP/1.1\r\n\r\n", 400),
            ("GET /topics//records HTTP/1.1\r\n\r\n", 400),
            ("GET rules HTTP/1.1\r\n\r\n", 400),
            ("POST / HTTP/1.1\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", 501),
            ("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nlong\r\n", 400),
            ("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nab\r\n", 400),
            ("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n", 413),
        ];
        for (text, status) in cases {
            assert_eq!(
                request(text).await.expect("an answer").expect_err("it is refused").status,
                status,
                "{text:.60}"
            );
        }
        assert!(request("GET / HTTP/1.1\r\n").await.is_none(), "half of one");
    }
}
