//! Controls of who may log in.

use krafka_protocol::Str;

use super::FakeCluster;

impl FakeCluster {
    /// Lets somebody log in with this password, by every mechanism that takes one. Who has logged in with another
    /// password stays until it must log in again.
    ///
    /// **Unstable:** may change in any release.
    pub fn set_password(&self, user: impl Into<Str>, password: impl Into<Str>) {
        let (user, password) = (user.into(), password.into());
        self.control(|state, _| state.logins.set_password(&user, &password));
    }
}
