//! Controls of who may log in.

use krafka_protocol::Str;

use super::FakeCluster;
use crate::operations::Operation;

impl FakeCluster {
    /// Lets somebody log in with this password, by every mechanism that takes one. Who has logged in with another
    /// password stays until it must log in again.
    ///
    /// **Unstable:** may change in any release.
    ///
    /// # Panics
    ///
    /// If either is empty: nobody could log in so.
    #[track_caller]
    pub fn set_password(&self, user: impl Into<Str>, password: impl Into<Str>) {
        let (user, password) = (user.into().to_string(), password.into().to_string().into());
        self.expect(Operation::SetPassword { user, password });
    }
}
