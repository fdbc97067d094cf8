//! One `Report` value, many renderers. Never computes.

pub mod report;
