//! Basic auth (RFC 7617) with the users of the web config.
//!
//! A check of bcrypt takes some hundredths of a second, by design. So it runs on a thread of its own, one at a time, and what was
//! accepted is remembered: clients with wrong passwords keep those with the right one from nothing.

use super::web_config::Users;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::Semaphore;

/// Accepted headers that are remembered: more than there are clients.
const MAX_ACCEPTED: usize = 64;
/// Checked for users that do not exist, so that the time does not say that they do not.
const NO_USER: &str = "$2y$10$.MbTIwl1wtvWHpETCmKWpOz7tPXyHgYZL21sCdkHrjrwlpjICQPTS";

/// Who may read the metrics.
#[derive(Clone)]
pub(super) struct BasicAuth(Arc<AuthState>);

struct AuthState {
    users: Users,
    accepted: Mutex<HashSet<String>>,
    turn: Semaphore,
}

impl BasicAuth {
    pub(super) fn new(users: Users) -> Self {
        Self(Arc::new(AuthState { users, accepted: Mutex::default(), turn: Semaphore::new(1) }))
    }

    /// Whether the header `Authorization` of a request names a user with the right password.
    pub(super) async fn accepts(&self, header: Option<&str>) -> bool {
        let Some(header) = header.map(str::to_owned) else { return false };
        if self.accepted().contains(&header) {
            return true;
        }
        let Some((user, password)) = decode(&header) else { return false };
        let Ok(_turn) = self.0.turn.acquire().await else { return false };
        let known = self.0.users.get(&user).cloned();
        let check = move || {
            let is_right = bcrypt::verify(password, known.as_deref().unwrap_or(NO_USER)).unwrap_or(false);
            is_right && known.is_some()
        };
        let is_right = tokio::task::spawn_blocking(check).await.unwrap_or(false);
        if is_right {
            let mut accepted = self.accepted();
            if accepted.len() >= MAX_ACCEPTED {
                accepted.clear();
            }
            accepted.insert(header);
        }
        is_right
    }

    fn accepted(&self) -> std::sync::MutexGuard<'_, HashSet<String>> {
        self.0.accepted.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// User and password of a header.
fn decode(header: &str) -> Option<(String, String)> {
    let (scheme, encoded) = header.split_once(' ')?;
    let decoded = STANDARD.decode(encoded.trim()).ok().filter(|_| scheme.eq_ignore_ascii_case("basic"))?;
    let text = String::from_utf8(decoded).ok()?;
    text.split_once(':').map(|(user, password)| (user.to_owned(), password.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(user: &str, password: &str) -> String {
        format!("Basic {}", STANDARD.encode(format!("{user}:{password}")))
    }

    #[test]
    fn only_the_right_password_of_a_user_is_accepted() {
        let hash = bcrypt::hash("a:b", 4).unwrap();
        let auth = BasicAuth::new(Users::from([("alice".to_owned(), hash)]));
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let accepts = |header: Option<&str>| runtime.block_on(auth.accepts(header));
        let right = header("alice", "a:b");
        for _ in 0..2 {
            assert!(accepts(Some(&right)));
            assert!(!accepts(Some(&header("alice", "a"))) && !accepts(Some(&header("bob", "a:b"))));
            assert!(!accepts(None) && !accepts(Some("")) && !accepts(Some("Basic ?")) && !accepts(Some("Bearer YTpi")));
        }
        assert!(accepts(Some(&right.replace("Basic", "basic"))));
    }
}
