//! One `Report` value, many renderers. Never computes.

pub mod report;

pub mod budget_table;
pub mod cost_table;
pub mod sections;

pub mod certificate;

pub mod charts;
pub mod svg;

pub mod export;
pub mod html;
pub mod json;
pub mod markdown;
pub mod terminal;

pub mod numbers;
pub mod plain;
pub mod table;

#[cfg(test)]
mod looks;
#[cfg(test)]
mod renderings;
#[cfg(test)]
mod sample;
