//! Hard cases
