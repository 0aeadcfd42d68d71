//! A headless prompt put together: the words, what came on stdin, data and pictures.

use crate::args::Ask;
use crate::environment::Environment;
use crate::exit::Failure;
use crate::terminal;
use serde_json::Value;
use std::io::{self, Read};
use std::path::Path;
use std::sync::mpsc;
use std::time::Duration;
use windlass::Prompt;
use windlass_kernel::Origin;
use windlass_tools::Checker;

/// Bytes of stdin that a prompt may take in.
const STDIN_BYTES: u64 = 10 << 20;
/// Bytes of a data file.
const DATA_BYTES: u64 = 64 << 20;
/// Bytes of a picture.
const IMAGE_BYTES: u64 = 20 << 20;
/// How long the first byte of stdin is waited for when there are words already: whoever started this may have left
/// a pipe open that nobody writes to.
const STDIN_WAIT: Duration = Duration::from_secs(3);

/// What is to be submitted; none if nothing was said at all.
pub fn assemble(ask: &Ask, environment: &Environment) -> Result<Option<Prompt>, Failure> {
    let words = ask.prompt.clone().flatten().unwrap_or_default();
    let piped = if environment.stdin_is_terminal { String::new() } else { stdin(!words.trim().is_empty())? };
    let text = match (words.trim().is_empty(), piped.trim().is_empty()) {
        (true, true) => return nothing_said(ask),
        (false, true) => words,
        (true, false) => piped,
        (false, false) => format!("{words}\n\n{piped}"),
    };
    let mut prompt = Prompt::new(text).origin(Origin::Headless);
    if let Some(intent) = &ask.intent {
        prompt = prompt.intent(intent);
    }
    if let Some(file) = &ask.data {
        prompt = prompt.data(data(file)?);
    }
    if let Some(schema) = &ask.json_schema {
        prompt = prompt.output_schema(json_schema(schema)?);
    }
    for file in &ask.images {
        let bytes = bytes(file, "--image", IMAGE_BYTES)?;
        prompt = prompt.image(media_type(file, &bytes)?, bytes);
    }
    Ok(Some(prompt))
}

/// The schema in a file, or the one written out; checked here, before a model is paid.
fn json_schema(given: &str) -> Result<Value, Failure> {
    let refused = |problem: String| Failure::usage(format!("--json-schema {given}: {problem}"));
    let text = match given.trim_start().starts_with('{') {
        true => given.to_owned(),
        false => std::fs::read_to_string(given).map_err(|error| {
            refused(format!("the file can't be read ({error}); give a file, or the schema itself: '{{\"type\": …}}'"))
        })?,
    };
    let schema: Value = serde_json::from_str(&text).map_err(|error| refused(format!("it is no JSON: {error}")))?;
    match schema.is_object() {
        true => Checker::compile(&schema).map_err(|problem| refused(format!("it is no JSON Schema: {problem}")))?,
        false => return Err(refused("a schema is a JSON object".into())),
    };
    Ok(schema)
}

/// With nothing said, a session that is taken up goes on with what was under way; what is attached has no prompt.
fn nothing_said(ask: &Ask) -> Result<Option<Prompt>, Failure> {
    let attached = ask.data.is_some() || ask.json_schema.is_some() || ask.intent.is_some() || !ask.images.is_empty();
    if !attached && (ask.go_on || ask.resume.is_some()) {
        return Ok(None);
    }
    Err(Failure::usage("the prompt is empty: say what is to be done, as in windlass -p \"…\", or pipe it in"))
}

fn stdin(words_given: bool) -> Result<String, Failure> {
    let (tell, told) = mpsc::channel();
    std::thread::spawn(move || {
        let mut stdin = io::stdin().lock();
        let mut bytes = vec![0; 1];
        let first = stdin.read(&mut bytes);
        let _ = tell.send(None);
        let all = first.and_then(|read| {
            bytes.truncate(read);
            stdin.take(STDIN_BYTES).read_to_end(&mut bytes)
        });
        let _ = tell.send(Some(all.map(|_| bytes)));
    });
    if words_given && told.recv_timeout(STDIN_WAIT).is_err() {
        terminal::tell("windlass: nothing came on stdin for 3 s; going on without it (</dev/null avoids the wait)");
        return Ok(String::new());
    }
    let read = told.iter().flatten().next().unwrap_or(Ok(vec![]));
    let bytes = read.map_err(|error| Failure::usage(format!("stdin can't be read: {error}")))?;
    if bytes.len() as u64 > STDIN_BYTES {
        return Err(Failure::usage(format!(
            "more than {STDIN_BYTES} bytes came on stdin: put them into a file and say where it is"
        )));
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn data(file: &Path) -> Result<Value, Failure> {
    let bytes = bytes(file, "--data", DATA_BYTES)?;
    serde_json::from_slice(&bytes)
        .map_err(|error| Failure::usage(format!("--data {}: it is no JSON: {error}", file.display())))
}

fn bytes(file: &Path, flag: &str, limit: u64) -> Result<Vec<u8>, Failure> {
    let shown = file.display();
    let failed = |error: io::Error| Failure::usage(format!("{flag} {shown}: it can't be read: {error}"));
    let size = std::fs::metadata(file).map_err(failed)?.len();
    if size > limit {
        return Err(Failure::usage(format!("{flag} {shown}: it has {size} bytes, and {limit} is the most")));
    }
    // A pipe or a device does not say how much it will give.
    let mut bytes = vec![];
    let read = std::fs::File::open(file).and_then(|file| file.take(limit + 1).read_to_end(&mut bytes));
    read.map_err(failed)?;
    if bytes.len() as u64 > limit {
        return Err(Failure::usage(format!("{flag} {shown}: it gives more than {limit} bytes, which is the most")));
    }
    Ok(bytes)
}

/// By the bytes themselves: names lie.
fn media_type(file: &Path, bytes: &[u8]) -> Result<&'static str, Failure> {
    Ok(match bytes {
        [0x89, b'P', b'N', b'G', ..] => "image/png",
        [0xff, 0xd8, 0xff, ..] => "image/jpeg",
        [b'G', b'I', b'F', b'8', ..] => "image/gif",
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => "image/webp",
        _ => {
            let file = file.display();
            return Err(Failure::usage(format!("--image {file}: it is no png, jpeg, gif or webp; turn it into one")));
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s0_04_pictures_are_told_by_their_bytes() {
        assert_eq!(media_type(Path::new("a.txt"), b"\x89PNG\r\n"), Ok("image/png"));
        assert_eq!(media_type(Path::new("a"), b"RIFF....WEBPVP8 "), Ok("image/webp"));
        assert!(media_type(Path::new("a.png"), b"<svg/>").unwrap_err().message.starts_with("--image a.png: "));
    }

    #[test]
    fn a_file_that_is_not_there_is_named() {
        let error = data(Path::new("/nowhere/data.json")).unwrap_err();
        assert!(error.message.starts_with("--data /nowhere/data.json: it can't be read"), "{}", error.message);
    }
}
