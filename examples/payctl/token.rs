use std::fs::File;
use std::io::Read;
use std::path::Path;

use reqwest::header::HeaderValue;

const LONGEST: u64 = 16 * 1024;

/// From the environment, or else from a file that nobody else can read. Never by
/// an argument, which every user of the machine can read.
pub(crate) fn token(file: Option<&Path>) -> Result<Option<String>, String> {
    if let Some(token) = std::env::var_os("PAYCTL_TOKEN").filter(|token| !token.is_empty()) {
        let token = token.into_string().ok().filter(|token| is_sendable(token));
        return token.map(Some).ok_or_else(|| {
            "PAYCTL_TOKEN holds a character that a header cannot: is there a newline in it?".to_owned()
        });
    }
    file.map(|path| in_file(path).map_err(|problem| format!("token_file {}: {problem}", path.display()))).transpose()
}

fn in_file(path: &Path) -> Result<String, String> {
    // Asked of what is open, not of the path, which may be another file by then.
    let file = File::open(path).map_err(|error| error.to_string())?;
    let about = file.metadata().map_err(|error| error.to_string())?;
    if !about.is_file() {
        return Err("not a file".to_owned());
    }
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;

        let mode = about.permissions().mode() & 0o777;
        if mode & 0o077 != 0 {
            return Err(format!("its mode is {mode:o}, so others can get at it: `chmod 600` it"));
        }
    }
    let mut text = String::new();
    let read = file.take(LONGEST + 1).read_to_string(&mut text).map_err(|error| error.to_string())?;
    let token = text.trim_end_matches(['\r', '\n']);
    match token {
        "" => Err("it is empty".to_owned()),
        _ if read as u64 > LONGEST || !is_sendable(token) => {
            Err("it holds more than a token: one line of visible characters".to_owned())
        }
        _ => Ok(token.to_owned()),
    }
}

fn is_sendable(token: &str) -> bool {
    HeaderValue::try_from(format!("Bearer {token}")).is_ok()
}
