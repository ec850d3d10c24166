// Bytes and Strings for the tests of this module.

import HTTPWire

/// The bytes of a text, scalar by scalar as in `Latin1`.
func bytes(_ text: String) -> [UInt8] { Latin1.bytes(text) }

/// Bytes as a text, scalar by scalar as in `Latin1`.
func text(_ bytes: [UInt8]) -> String { bytes.withUnsafeBytes { Latin1.string($0) } }

func find(_ name: String) -> KnownField { bytes(name).withUnsafeBytes { KnownField.find($0) } }
