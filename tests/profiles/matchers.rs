//! The parts of a matcher.
