//! Users and their passwords and tokens, as a file names them.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use parking_lot::Mutex;
use sha2::{Digest, Sha256};
use tokio::sync::Semaphore;

/// Passwords that are checked at the same time. One takes much of a processor, on purpose.
const CONCURRENT_CHECKS: usize = 1;
/// A password that nobody has, at the usual cost: what is checked where there is no such user, so that it takes as long.
const NOBODY: &str = "$2b$10$abcdefghijklmnopqrstuuv2PaxZO.gRiMKu8gyyycqlaX6nT7pjC";

/// What is wrong with a line of a users file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {fault}")]
pub struct UsersParseError {
    /// The line, from 1 on.
    pub line: usize,
    fault: UsersFault,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
enum UsersFault {
    #[error("a line is NAME:HASH")]
    NoHash,
    #[error("the user {0} is there twice")]
    Twice(String),
    #[error("the hash is to be one of bcrypt ($2y$...), or sha256: and the 64 hexadecimal digits of a token's SHA-256")]
    UnknownHash,
}

/// Users with their passwords and tokens.
///
/// A line of the file is `NAME:$2y$...` for a password (as `htpasswd -B` writes it), or `NAME:sha256:HEX` for a token that
/// nobody can guess. Empty lines and lines with `#` are passed over.
#[derive(Clone)]
pub struct Users(Arc<KnownUsers>);

struct KnownUsers {
    hashes: HashMap<String, SecretHash>,
    /// Passwords that were found to be right: to check one takes long.
    known: Mutex<HashMap<String, String>>,
    checks: Arc<Semaphore>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum SecretHash {
    Bcrypt(String),
    Sha256([u8; 32]),
}

impl fmt::Debug for Users {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Users").field("count", &self.0.hashes.len()).finish_non_exhaustive()
    }
}

/// Whether two texts are equal. Takes the same time for all texts of a length.
pub(crate) fn constant_time_eq(a: &[u8], b: &[u8]) -> bool {
    a.len() == b.len() && a.iter().zip(b).fold(0, |bits, (a, b)| bits | (a ^ b)) == 0
}

impl SecretHash {
    fn parse(text: &str) -> Option<Self> {
        if let Some(digits) = text.strip_prefix("sha256:") {
            let byte = |at: usize| u8::from_str_radix(digits.get(2 * at..2 * at + 2)?, 16).ok();
            let bytes: Option<Vec<u8>> = (0..32).map(byte).collect();
            return bytes.filter(|_| digits.len() == 64)?.try_into().ok().map(SecretHash::Sha256);
        }
        text.parse::<bcrypt::HashParts>().ok().map(|_| SecretHash::Bcrypt(text.to_owned()))
    }
}

impl Users {
    /// The users of a text of lines.
    ///
    /// # Errors
    /// [`UsersParseError`], which says nothing of what is secret.
    pub fn parse(text: &str) -> Result<Self, UsersParseError> {
        let mut hashes = HashMap::new();
        for (line, text) in (1..).zip(text.lines().map(str::trim)) {
            let failed = |fault| UsersParseError { line, fault };
            if text.is_empty() || text.starts_with('#') {
                continue;
            }
            let (name, hash) = text.split_once(':').ok_or_else(|| failed(UsersFault::NoHash))?;
            let hash = SecretHash::parse(hash).ok_or_else(|| failed(UsersFault::UnknownHash))?;
            if hashes.insert(name.to_owned(), hash).is_some() {
                return Err(failed(UsersFault::Twice(name.to_owned())));
            }
        }
        let checks = Arc::new(Semaphore::new(CONCURRENT_CHECKS));
        Ok(Users(Arc::new(KnownUsers { hashes, known: Mutex::default(), checks })))
    }

    /// Whether a token is that of a user.
    pub(crate) fn has_token(&self, token: &str) -> bool {
        let digest = Sha256::digest(token.as_bytes());
        // All are compared, so that it takes the same time whose it is.
        let is_one = |hash: &SecretHash| matches!(hash, SecretHash::Sha256(of) if constant_time_eq(of, &digest));
        self.0.hashes.values().filter(|hash| is_one(hash)).count() > 0
    }

    /// Whether a password, or a token in its place, is that of a user.
    pub(crate) async fn has_password_or_token(&self, name: &str, password: &str) -> bool {
        let hash = match self.0.hashes.get(name) {
            Some(SecretHash::Sha256(of)) => return constant_time_eq(of, &Sha256::digest(password.as_bytes())),
            Some(SecretHash::Bcrypt(hash)) => Some(hash.clone()),
            None => None,
        };
        if self.0.known.lock().get(name).is_some_and(|known| constant_time_eq(known.as_bytes(), password.as_bytes())) {
            return true;
        }
        let Ok(permit) = self.0.checks.clone().acquire_owned().await else { return false };
        let (given, is_user) = (password.to_owned(), hash.is_some());
        let check = tokio::task::spawn_blocking(move || {
            let _permit = permit;
            bcrypt::verify(given, hash.as_deref().unwrap_or(NOBODY)).unwrap_or(false)
        });
        let is_right = is_user && check.await.unwrap_or(false);
        if is_right {
            self.0.known.lock().insert(name.to_owned(), password.to_owned());
        }
        is_right
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_have_passwords_and_tokens() {
        let hash = bcrypt::hash("pass:word", 4).unwrap();
        let digest: String = Sha256::digest(b"a token").iter().map(|byte| format!("{byte:02x}")).collect();
        let users = Users::parse(&format!("# ours\n\nann:{hash}\nrobot:sha256:{digest}\n")).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let has = |name: &str, password: &str| runtime.block_on(users.has_password_or_token(name, password));
        // Twice: the second time it is known.
        assert!(has("ann", "pass:word") && has("ann", "pass:word"));
        assert!(!has("ann", "password") && !has("ann", "") && !has("bob", "pass:word") && !has("ann", "a token"));
        assert!(has("robot", "a token") && !has("robot", "another"));
        assert!(users.has_token("a token") && !users.has_token("pass:word") && !users.has_token(""));
        assert!(!format!("{users:?}").contains("ann"));
    }

    #[test]
    fn lines_that_are_wrong_are_told() {
        let told = |text: &str| Users::parse(text).unwrap_err().to_string();
        assert_eq!(told("ann"), "line 1: a line is NAME:HASH");
        let hash = bcrypt::hash("x", 4).unwrap();
        assert_eq!(told(&format!("ann:{hash}\nann:{hash}")), "line 2: the user ann is there twice");
        for hash in ["secret", "", "$2y$", "sha256:", "sha256:00", &format!("sha256:{}", "é".repeat(32)), "$apr1$x$y"]
        {
            assert!(told(&format!("ann:{hash}")).contains("the hash is to be one of bcrypt"), "{hash}");
            assert!(hash.is_empty() || !told(&format!("ann:{hash}")).contains(&format!("ann:{hash}")));
        }
    }
}
