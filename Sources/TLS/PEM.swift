// PEM, the text form of certificates and keys (RFC 7468), by OpenSSL.

import CLibssl

/// Reads and writes PEM. No password is ever asked for.
package enum PEM {
    /// The certificates of a text, in their order; other blocks are passed over.
    /// - Throws: ``CertificateError/noCertificate`` or ``CertificateError/malformed(_:)``.
    package static func certificates(in text: [UInt8]) throws(CertificateError) -> [Certificate] {
        guard let bio = reader(text) else { throw .openSSL(lastError()) }
        defer { BIO_free(bio) }
        var found: [Certificate] = []
        while let handle = c_pem_read_x509(bio) { found.append(Certificate(owning: handle)) }
        let error = ERR_peek_last_error()
        guard c_err_library(error) == ERR_LIB_PEM, c_err_reason(error) == PEM_R_NO_START_LINE else {
            throw .malformed(lastError())
        }
        ERR_clear_error()
        guard !found.isEmpty else { throw .noCertificate }
        return found
    }

    /// The first private key of a text; other blocks are passed over.
    package static func privateKey(in text: [UInt8]) throws(CertificateError) -> PrivateKey {
        guard let bio = reader(text) else { throw .openSSL(lastError()) }
        defer { BIO_free(bio) }
        guard let handle = c_pem_read_key(bio) else {
            let isProtected = text.contains("ENCRYPTED")
            ERR_clear_error()
            throw isProtected ? .password : .noKey
        }
        return PrivateKey(owning: handle)
    }

    /// What `write` writes as text; nil if it fails.
    static func written(_ write: (OpaquePointer) -> Int32) -> String? {
        guard let bio = BIO_new(BIO_s_mem()) else { return nil }
        defer { BIO_free(bio) }
        guard write(bio) > 0 else {
            ERR_clear_error()
            return nil
        }
        var bytes = [UInt8](repeating: 0, count: Int(BIO_ctrl_pending(bio)))
        let count = BIO_read(bio, &bytes, Int32(clamping: bytes.count))
        return String(decoding: bytes.prefix(max(0, Int(count))), as: UTF8.self)
    }

    /// The last error of this thread's queue in words; the queue is empty afterwards.
    static func lastError() -> String {
        let error = ERR_peek_last_error()
        ERR_clear_error()
        return ERR_reason_error_string(error).map { String(cString: $0) } ?? "unknown error"
    }

    /// A reader with a copy of the text.
    private static func reader(_ text: [UInt8]) -> OpaquePointer? {
        guard let bio = BIO_new(BIO_s_mem()) else { return nil }
        guard text.isEmpty || BIO_write(bio, text, Int32(clamping: text.count)) == Int32(clamping: text.count) else {
            BIO_free(bio)
            return nil
        }
        return bio
    }
}

extension Array where Element == UInt8 {
    /// Whether an ASCII word stands anywhere in it.
    fileprivate func contains(_ word: StaticString) -> Bool {
        let wanted = word.withUTF8Buffer { Array($0) }
        guard count >= wanted.count else { return false }
        return (0...(count - wanted.count)).contains { self[$0..<($0 + wanted.count)].elementsEqual(wanted) }
    }
}
