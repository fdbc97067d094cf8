//! One `Report` value, many renderers. Never computes.
