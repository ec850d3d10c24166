// Bodies in the content codings that origins use.

/// Bytes by their digits, two for each.
package func bytes(hex: String) -> [UInt8] {
    let digits = Array(hex.utf8)
    return stride(from: 0, to: digits.count, by: 2).map { index in
        UInt8(String(decoding: digits[index..<index + 2], as: UTF8.self), radix: 16) ?? 0
    }
}

/// One text in every coding.
package enum Coded {
    package static let json = Array(#"{"a":[1,2,3],"b":"hello hello hello hello"}"#.utf8)
    package static let png: [UInt8] = [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A] + Array("0123456789".utf8)
    /// `{"user": {"name": ["xxx…", …, 0]}}` in gzip: a member for each string of 4,000 bytes, 43 times as short as it.
    package static func longDocument(strings: Int) -> [UInt8] {
        let string = bytes(
            hex: "1f8b0800000000000203edc1310100000c02a02ede0634fe62ec0132000000e05d7ac645cd81a30f0000"
        )
        return bytes(hex: "1f8b0800000000000203ab562a2d4e2d52b252a856ca4bcc4d0532a2015848430213000000")
            + Array(repeatElement(string, count: strings).joined())
            + bytes(hex: "1f8b08000000000002033388adad050064902e0104000000")
    }

    package static let html = Array("<!doctype html><html>nope</html>".utf8)

    package static let jsonBy: [(String, [UInt8])] = [
        ("identity", json),
        ("br", bytes(hex: "1b2a000004fe6747da1e7fa92cd21694e8ed52126526aac31b8fa5da15ca1147b1bc0d3e")),
        (
            "gzip",
            bytes(
                hex:
                    "1f8b0800000000000203ab564a54b28a36d431d2318ed5514a52b252ca48cdc9c957c020956a01331abccf2b000000"
            )
        ),
        ("deflate", bytes(hex: "78daab564a54b28a36d431d2318ed5514a52b252ca48cdc9c957c020956a010d8f0d7e")),
        // Without the zlib wrapper, as some send it.
        ("deflate", bytes(hex: "ab564a54b28a36d431d2318ed5514a52b252ca48cdc9c957c020956a01")),
    ]
    package static let pngBy: [(String, [UInt8])] = [
        ("identity", png), ("br", bytes(hex: "8b088089504e470d0a1a0a3031323334353637383903")),
        ("x-gzip", bytes(hex: "1f8b0800000000000203eb0cf073e7e592e23230343236313533b7b004004a5d49e812000000")),
        ("deflate", bytes(hex: "78daeb0cf073e7e592e23230343236313533b7b0040025e003b7")),
        ("Deflate", bytes(hex: "eb0cf073e7e592e23230343236313533b7b00400")),
    ]
    package static let htmlBy: [(String, [UInt8])] = [
        ("", html), ("BR", bytes(hex: "1b1f00000436e01003c974fd7391598449e1986e58ba4700")),
        (
            "gzip",
            bytes(
                hex: "1f8b0800000000000203b3514cc94f2ea92c4855c828c9cdb1b3019379f905a936fa6026006fe1c34c20000000"
            )
        ),
        ("deflate", bytes(hex: "78dab3514cc94f2ea92c4855c828c9cdb1b3019379f905a936fa602600bea10ba8")),
    ]
}
