//! Frames: the length in four bytes, little-endian, then that many bytes of JSON.

use std::io::{self, Read, Write};

use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::io::{AsyncRead, AsyncReadExt};

use super::protocol::{MAX_PROGRAM_BYTES, MAX_REPLY_BYTES};

/// The frame of a value.
///
/// # Errors
/// If the value is larger than a frame may be.
pub(super) fn frame(value: &impl Serialize, max: usize) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; 4];
    serde_json::to_writer(&mut bytes, value)?;
    let length = bytes.len() - 4;
    let header = u32::try_from(length).ok().filter(|_| length <= max).ok_or_else(too_large)?;
    bytes[..4].copy_from_slice(&header.to_le_bytes());
    Ok(bytes)
}

/// Writes a value to the parent.
pub(super) fn write(out: &mut impl Write, value: &impl Serialize) -> io::Result<()> {
    out.write_all(&frame(value, MAX_REPLY_BYTES)?)?;
    out.flush()
}

/// Reads a value from the parent; `None` at the end of the input.
pub(super) fn read<T: DeserializeOwned>(input: &mut impl Read) -> io::Result<Option<T>> {
    let mut header = [0; 4];
    match input.read_exact(&mut header) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        read => read?,
    }
    let mut bytes = vec![0; length(header, MAX_PROGRAM_BYTES)?];
    input.read_exact(&mut bytes)?;
    Ok(Some(serde_json::from_slice(&bytes)?))
}

/// Reads a value from a worker.
pub(super) async fn receive<T: DeserializeOwned>(input: &mut (impl AsyncRead + Unpin)) -> io::Result<T> {
    let mut header = [0; 4];
    input.read_exact(&mut header).await?;
    let length = length(header, MAX_REPLY_BYTES)?;
    // Memory grows with what arrives and not with what is announced.
    let mut bytes = Vec::new();
    input.take(length as u64).read_to_end(&mut bytes).await?;
    if bytes.len() < length {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(serde_json::from_slice(&bytes)?)
}

fn length(header: [u8; 4], max: usize) -> io::Result<usize> {
    usize::try_from(u32::from_le_bytes(header)).ok().filter(|length| *length <= max).ok_or_else(too_large)
}

fn too_large() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "a frame is too large")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;
    use crate::program::Program;
    use crate::program::module::ReadModule;
    use crate::sandbox::protocol::{Hello, WorkerReply};

    #[test]
    fn values_are_read_as_they_were_written() {
        let mut bytes = Vec::new();
        write(&mut bytes, &json!({"a": [1, "x"]})).unwrap();
        write(&mut bytes, &json!(null)).unwrap();
        let mut input = bytes.as_slice();
        assert_eq!(read::<Value>(&mut input).unwrap(), Some(json!({"a": [1, "x"]})));
        assert_eq!(read::<Value>(&mut input).unwrap(), Some(json!(null)));
        assert_eq!(read::<Value>(&mut input).unwrap(), None);
    }

    #[test]
    fn announced_length_beyond_the_bound_is_an_error_before_anything_is_read() {
        let bytes = [0xff, 0xff, 0xff, 0x7f, b'1'];
        assert_eq!(read::<Value>(&mut bytes.as_slice()).unwrap_err().kind(), io::ErrorKind::InvalidData);
        assert_eq!(
            frame(&"x".repeat(MAX_PROGRAM_BYTES), MAX_PROGRAM_BYTES).unwrap_err().kind(),
            io::ErrorKind::InvalidData
        );
    }

    fn received<T: DeserializeOwned>(bytes: &[u8]) -> io::Result<T> {
        futures::executor::block_on(receive(&mut &*bytes))
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(256))]

        #[test]
        fn no_bytes_are_more_than_an_error(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let mut framed = u32::try_from(bytes.len()).unwrap().to_le_bytes().to_vec();
            framed.extend(&bytes);
            for input in [&bytes, &framed] {
                prop_assert!(!matches!(read::<Program>(&mut input.as_slice()), Ok(Some(_))));
                prop_assert!(received::<Hello>(input).is_err());
                prop_assert!(received::<WorkerReply>(input).is_err());
                prop_assert!(received::<ReadModule>(input).is_err());
            }
        }

        #[test]
        fn changed_reply_is_another_reply_or_an_error(at in 0usize..200, byte in any::<u8>()) {
            let reply = json!({"stop": {"stop": "call", "call": {"function": "a.b", "arguments": {"x": [1, 2]}}, "line": 3},
                "number": 1, "reusable": true});
            let mut bytes = frame(&reply, MAX_REPLY_BYTES).unwrap();
            let at = at % bytes.len();
            bytes[at] = byte;
            let _ = received::<WorkerReply>(&bytes);
            bytes.truncate(at);
            prop_assert!(received::<WorkerReply>(&bytes).is_err());
        }
    }
}
