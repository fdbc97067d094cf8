//! What the probe binaries share: their command line and their session.
