// The TLS settings of services as OpenSSL wants them, for the connections that libcurl does not make.

import CLibcurl
package import EventLoop
import Files
import Glibc
import HTTPWire
import Synchronization
package import TLS

/// Makes TLS contexts out of options, and keeps the latest, as long as their files are the same.
///
/// Sendable: the contexts that are kept are under a mutex, and are not changed after they were made.
package final class OriginSessions: Sendable {
    /// The contexts of the whole process, since they hold the authorities of the system.
    package static let shared = OriginSessions()

    private struct Kept {
        /// Those of the files; nil for none, and for one that is absent.
        let signatures: [FileSignature?]
        let context: TLSContext
    }

    /// The most contexts that are kept; beyond it all are made anew.
    private static let limit = 64
    private let kept = Mutex<[TLSOptions: Kept]>([:])

    /// The context for sessions with an origin. A thread of its own reads the files: the resolver's may wait for name
    /// servers.
    /// - Parameter name: host and port, for messages.
    /// - Throws: `.tlsFile` if one of the files cannot be used.
    package func context(
        for tls: TLSOptions,
        to name: String,
        on loop: isolated EventLoop
    ) async throws(UpstreamError) -> TLSContext {
        do {
            return try await DetachedThread.result { try self.find(tls, name) }
        } catch let error as UpstreamError {
            throw error
        } catch {
            throw UpstreamError(.internal, detail: "the TLS settings for \(name) were not read: \(error)")
        }
    }

    private func find(_ tls: TLSOptions, _ name: String) throws(UpstreamError) -> TLSContext {
        let ownFiles = c_curl_default_ca_file().map { String(cString: $0) }
        let ownFolder = c_curl_default_ca_path().map { String(cString: $0) }
        let files = [tls.ca ?? ownFiles, tls.clientCertificate, tls.clientKey]
        // They are taken before the files are read: a file that changes meanwhile is read again.
        let signatures = files.map { $0.flatMap(FileSignature.init) }
        if let known = kept.withLock({ $0[tls] }), known.signatures == signatures { return known.context }
        let made = try Self.make(tls, name, system: (ownFiles, ownFolder))
        let outdated = kept.withLock { kept in
            var outdated = kept.updateValue(Kept(signatures: signatures, context: made), forKey: tls).map { [$0] } ?? []
            if kept.count > Self.limit {
                outdated += kept.filter { $0.key != tls }.values
                kept = kept.filter { $0.key == tls }
            }
            return outdated
        }
        withExtendedLifetime(outdated) {}
        return made
    }

    private static func make(
        _ tls: TLSOptions,
        _ name: String,
        system: (file: String?, folder: String?)
    ) throws(UpstreamError) -> TLSContext {
        let failure = HandshakeFailure(name: name, tls: tls)
        let authorities = try tls.verify ? tls.ca.map { path throws(UpstreamError) in try read(path, failure) } : nil
        let chain = try tls.clientCertificate.map { path throws(UpstreamError) in try read(path, failure) }
        let key = try tls.clientKey.map { path throws(UpstreamError) in try read(path, failure) }
        do throws(CertificateError) {
            var trust = TLSContext.Trust.anybody
            if let authorities {
                trust = .authorities(try PEM.certificates(in: authorities))
            } else if tls.verify {
                // A system may have only one of the two.
                trust = .files(system.file.flatMap { access($0, R_OK) == 0 ? $0 : nil }, folder: system.folder)
            }
            var identity: TLSIdentity?
            if let chain { identity = try TLSIdentity(chain: chain, key: key ?? chain) }
            return try TLSContext(asking: ["http/1.1"], trust: trust, pins: digests(tls.pins), identity: identity)
        } catch {
            throw failure.file(error.description)
        }
    }

    /// The digests of pins, each `sha256//` and Base64; the configuration has checked their form.
    private static func digests(_ pins: [String]) -> Set<[UInt8]> {
        Set(pins.map { Base64.decode(String($0.dropFirst("sha256//".count))) ?? [] })
    }

    private static func read(_ path: String, _ failure: HandshakeFailure) throws(UpstreamError) -> [UInt8] {
        do throws(SystemError) { return try WholeFile.read(path) } catch { throw failure.file("\(error)") }
    }
}
