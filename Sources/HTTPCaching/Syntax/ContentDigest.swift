// Digests of bytes in memory, by OpenSSL, for keys that name content and for names of files.

import CLibcrypto

/// The digests that are supported.
package enum ContentDigest: Sendable {
    /// MD5, for the names that the old download manager gave its files; never for anything that has to be secure.
    case md5
    case sha256

    /// The digest in lower-case hexadecimal digits; nil if the system's OpenSSL refuses it, as one in FIPS mode refuses
    /// MD5.
    package func hex(_ bytes: some Collection<UInt8>) -> String? { raw(Array(bytes)).map(Self.hex) }

    /// The digest of borrowed bytes in hexadecimal digits, without a copy.
    package func hex(_ bytes: UnsafeRawBufferPointer) -> String? { raw(bytes).map(Self.hex) }

    /// The digest of bytes that come in parts, in hexadecimal digits.
    /// - Parameter next: fills a buffer with the next part, and returns its length in bytes: 0 at the end, less than 0
    ///   if there is to be no digest.
    package func hex(of next: (UnsafeMutableRawBufferPointer) -> Int) -> String? {
        guard let context = EVP_MD_CTX_new() else { return nil }
        defer { EVP_MD_CTX_free(context) }
        guard EVP_DigestInit_ex(context, self == .md5 ? EVP_md5() : EVP_sha256(), nil) == 1 else { return nil }
        var part = [UInt8](repeating: 0, count: 64 << 10)
        while true {
            let count = part.withUnsafeMutableBytes { next($0) }
            guard count > 0 else {
                if count < 0 { return nil }
                break
            }
            guard EVP_DigestUpdate(context, part, count) == 1 else { return nil }
        }
        var digest = [UInt8](repeating: 0, count: Int(EVP_MAX_MD_SIZE))
        var count: UInt32 = 0
        guard EVP_DigestFinal_ex(context, &digest, &count) == 1 else { return nil }
        return Self.hex(Array(digest.prefix(Int(count))))
    }

    /// The digest of a message under a key, by HMAC (RFC 2104) with SHA-256, in hexadecimal digits: without the key the
    /// message can be neither told from it nor guessed. Nil as for `hex`.
    package static func keyed(_ message: [UInt8], by key: [UInt8]) -> String? {
        let block = 64
        guard let short = key.count > block ? sha256.raw(key) : key else { return nil }
        let padded = short + [UInt8](repeating: 0, count: block - short.count)
        guard let inner = sha256.raw(padded.map { $0 ^ 0x36 } + message) else { return nil }
        return sha256.raw(padded.map { $0 ^ 0x5C } + inner).map(hex)
    }

    /// The bytes of the digest; nil as for `hex`.
    func raw(_ content: [UInt8]) -> [UInt8]? { content.withUnsafeBytes { raw($0) } }

    private func raw(_ content: UnsafeRawBufferPointer) -> [UInt8]? {
        var digest = [UInt8](repeating: 0, count: Int(EVP_MAX_MD_SIZE))
        var count: UInt32 = 0
        let method = self == .md5 ? EVP_md5() : EVP_sha256()
        guard EVP_Digest(content.baseAddress, content.count, &digest, &count, method, nil) == 1 else { return nil }
        return Array(digest.prefix(Int(count)))
    }

    private static func hex(_ digest: [UInt8]) -> String {
        let digits = Array("0123456789abcdef".utf8)
        return String(decoding: digest.flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 15)]] }, as: UTF8.self)
    }
}
