// Chunked bodies to take and to refuse: the tables of the tests and the seeds of the fuzzing.

import HTTPWire

enum ChunkedCorpus {
    /// Bodies that are taken: content, trailers, body.
    static let taken: [(String, [(String, String)], String)] = [
        ("", [], "0\r\n\r\n"),
        ("", [], "0000000000000000\r\n\r\n"),
        ("hello", [], "5\r\nhello\r\n0\r\n\r\n"),
        ("hello world", [], "5\r\nhello\r\n006\r\n world\r\n0\r\n\r\n"),
        ("0123456789abcdef", [], "A\r\n0123456789\r\n0000000000000006\r\nabcdef\r\n0\r\n\r\n"),
        ("hello", [], "5;name=value;q=\"a b\t\u{E9}\"\r\nhello\r\n0;last\r\n\r\n"),
        ("hello", [], "5;\r\nhello\r\n0\r\n\r\n"),
        // RFC 9112 section 7.1.1: whitespace may stand around a `;`.
        ("hello", [], "5 ;a\r\nhello\r\n0\r\n\r\n"),
        ("hello", [], "5\t ; a = b ; c \r\nhello\r\n0 \t;\r\n\r\n"),
        ("\r\n0\r\n\r\n", [], "7\r\n\r\n0\r\n\r\n\r\n0\r\n\r\n"),
        ("x", [("X-Sum", "1"), ("y", "\u{E9}")], "1\r\nx\r\n0\r\nX-Sum:1 \r\ny: \u{E9}\r\n\r\n"),
        ("", [("A", "1")], "0\r\nContent-Length: 5\r\nA: 1\r\nHost: b\r\nTransfer-Encoding: gzip\r\n\r\n"),
    ]

    /// Bodies that a lenient reader takes from an origin, and no other: all of them say `hello`.
    static let padded = [
        "5 \r\nhello\r\n0\r\n\r\n", "5\t\r\nhello\r\n0\r\n\r\n", "5    \t \r\nhello\r\n0  \r\n\r\n",
        "2 ;a\r\nhe\r\n3 \r\nllo\r\n0\t\r\n\r\n",
    ]

    /// Bodies that are refused: reason, body.
    static let refused: [(WireReason, String)] = [
        (.bareLineFeed, "5\nhello\r\n0\r\n\r\n"),
        (.bareLineFeed, "\n5\r\nhello\r\n0\r\n\r\n"),
        (.bareLineFeed, "5\r\nhello\n0\r\n\r\n"),
        (.bareLineFeed, "5;a\nb\r\nhello\r\n0\r\n\r\n"),
        (.bareLineFeed, "0\n\r\n"),
        (.bareLineFeed, "0\r\nX: y\n\r\n"),
        (.bareLineFeed, "0\r\nX: y\r\n\n"),
        (.bareLineFeed, "0\r\n\n"),
        (.bareCarriageReturn, "5\rhello\r\n0\r\n\r\n"),
        (.bareCarriageReturn, "5;a\rb\r\nhello\r\n0\r\n\r\n"),
        (.bareCarriageReturn, "5\r\nhello\r0\r\n\r\n"),
        (.bareCarriageReturn, "0\r\n\rX"),
        (.bareCarriageReturn, "0\r\nX: y\rz\r\n\r\n"),
        (.chunkExtensionMalformed, "5;a\0b\r\nhello\r\n0\r\n\r\n"),
        (.chunkExtensionMalformed, "5;a\u{7F}\r\nhello\r\n0\r\n\r\n"),
        (.chunkExtensionTooLong, "5;\(String(repeating: "e", count: 257))\r\nhello\r\n0\r\n\r\n"),
        (.chunkSizeMalformed, "\r\nhello\r\n0\r\n\r\n"),
        (.chunkSizeMalformed, ";a\r\nhello\r\n0\r\n\r\n"),
        (.chunkSizeMalformed, "+5\r\nhello\r\n0\r\n\r\n"),
        (.chunkSizeMalformed, "-5\r\nhello\r\n0\r\n\r\n"),
        (.chunkSizeMalformed, "0x5\r\nhello\r\n0\r\n\r\n"),
        (.chunkSizeMalformed, " 5\r\nhello\r\n0\r\n\r\n"),
        (.chunkSizeMalformed, "5 \r\nhello\r\n0\r\n\r\n"),
        (.chunkSizeMalformed, "5\t\r\nhello\r\n0\r\n\r\n"),
        (.chunkSizeMalformed, "5\r\nhello\r\n0 \r\n\r\n"),
        (.chunkSizeMalformed, "5 5\r\nhello\r\n0\r\n\r\n"),
        (.chunkSizeMalformed, "5 x;a\r\nhello\r\n0\r\n\r\n"),
        (.chunkSizeMalformed, "5\u{B};a\r\nhello\r\n0\r\n\r\n"),
        (.bareLineFeed, "5 \nhello\r\n0\r\n\r\n"),
        (.bareCarriageReturn, "5 ;a\rb\r\nhello\r\n0\r\n\r\n"),
        (.chunkExtensionTooLong, "5\(String(repeating: " ", count: 257))\r\nhello\r\n0\r\n\r\n"),
        (.chunkSizeMalformed, "5_0\r\n"),
        (.chunkSizeMalformed, "g\r\n"),
        (.chunkSizeMalformed, "\u{EF}\u{BC}\u{95}\r\nhello\r\n0\r\n\r\n"),
        (.chunkSizeTooLarge, "00000000000000005\r\nhello\r\n0\r\n\r\n"),
        (.chunkSizeTooLarge, "8000000000000000\r\n"),
        (.chunkSizeTooLarge, "ffffffffffffffff\r\n"),
        (.chunkSizeTooLarge, "10000000000000000\r\n"),
        (.chunkEndMalformed, "5\r\nhello!\r\n0\r\n\r\n"),
        (.chunkEndMalformed, "4\r\nhello\r\n0\r\n\r\n"),
        (.chunkEndMalformed, "5\r\nhello0\r\n\r\n"),
        (.spaceBeforeColon, "0\r\nX : y\r\n\r\n"),
        (.fieldNameMalformed, "0\r\nGET/HTTP/1.1\r\n\r\n"),
        (.foldedLine, "0\r\n X: y\r\n\r\n"),
        (.fieldValueControl, "0\r\nX: \0\r\n\r\n"),
    ]
}
