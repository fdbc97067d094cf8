//! The wish to stop, raised once (Ctrl-C) and seen everywhere: between laps and inside them.

use tokio::sync::watch;

/// A flag that can only be raised. Copies share it.
#[derive(Clone, Debug)]
pub struct Cancel {
    raise: watch::Sender<bool>,
}

impl Default for Cancel {
    fn default() -> Self {
        Self { raise: watch::Sender::new(false) }
    }
}

impl Cancel {
    /// Raises the flag.
    pub fn cancel(&self) {
        self.raise.send_replace(true);
    }

    /// Whether the flag has been raised.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        *self.raise.borrow()
    }

    /// Returns when the flag is raised.
    pub async fn cancelled(&self) {
        let mut seen = self.raise.subscribe();
        // It can only fail when the sender is gone, and `self` holds it.
        let _ = seen.wait_for(|&raised| raised).await;
    }
}
