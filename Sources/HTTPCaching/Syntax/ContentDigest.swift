// Digests of bytes in memory, by OpenSSL: for keys that name content, and for names of files.

import CLibcrypto

/// Which digest.
package enum ContentDigest: Sendable {
    /// For the names that the old download manager gave its files, and never for anything that has to be secure.
    case md5
    case sha256

    /// Hexadecimal digits in lower case; nil where the system's OpenSSL refuses the digest, as one
    /// in FIPS mode refuses MD5.
    package func hex(_ bytes: some Collection<UInt8>) -> String? {
        let content = Array(bytes)
        var digest = [UInt8](repeating: 0, count: Int(EVP_MAX_MD_SIZE))
        var count: UInt32 = 0
        let method = self == .md5 ? EVP_md5() : EVP_sha256()
        guard EVP_Digest(content, content.count, &digest, &count, method, nil) == 1 else { return nil }
        let digits = Array("0123456789abcdef".utf8)
        return String(
            decoding: digest.prefix(Int(count)).flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 15)]] },
            as: UTF8.self
        )
    }
}
