// How a tunnel reaches its other side: the same resolver and rules as transfers, connects with a deadline.

package import EventLoop
import Glibc
package import Upstream

extension Tunnel {
    /// Resolves the target and connects to the first allowed address that takes the connection.
    ///
    /// - Parameters:
    ///   - host: a name or an address, IPv6 with or without brackets.
    ///   - rules: which addresses may be tried, checked after name resolution (http-rules.md 40).
    ///   - timeout: nanoseconds for all attempts together, name resolution not included.
    /// - Returns: a non-blocking descriptor, the caller's to close.
    package static func connect(
        host: String,
        port: UInt16,
        resolver: Resolver,
        rules: TargetRules,
        timeout: UInt64,
        context: LoopContext,
        on loop: isolated EventLoop
    ) async throws(UpstreamError) -> Int32 {
        let addresses = try await resolver.resolve(host, port: port, rules: rules)
        return try await connect(to: addresses, host: host, timeout: timeout, context: context, on: loop)
    }

    /// Connects to the first of the addresses that takes the connection; `host` is what errors name.
    package static func connect(
        to addresses: [SocketAddress],
        host: String,
        timeout: UInt64,
        context: LoopContext,
        on loop: isolated EventLoop
    ) async throws(UpstreamError) -> Int32 {
        let now = Monotonic.now()
        let deadline = now &+ min(timeout, .max - now)
        var failure = UpstreamError(.nameNotFound, detail: "\(host) has no address; check the name")
        for address in addresses {
            do throws(UpstreamError) {
                return try await connect(to: address, host, until: deadline, context: context, on: loop)
            } catch {
                failure = error
                if error.kind == .cancelled || error.kind == .timeout(.connect) { break }
            }
        }
        throw failure
    }

    private static func connect(
        to address: SocketAddress,
        _ host: String,
        until deadline: UInt64,
        context: LoopContext,
        on loop: isolated EventLoop
    ) async throws(UpstreamError) -> Int32 {
        let descriptor: Int32
        do throws(SystemError) {
            descriptor = try Socket.connect(to: address)
        } catch {
            throw refused(error, host)
        }
        let wait = await context.wait(for: descriptor, .write, until: deadline, on: loop)
        let code = Socket.pendingError(descriptor)
        if wait == .ready, code == 0 {
            Socket.setNoDelay(descriptor)
            return descriptor
        }
        Socket.close(descriptor)
        switch wait {
        case .ready: throw refused(SystemError("connect \(address)", code: code), host)
        case .timedOut:
            let what = "did not take the connection in time; try again, or raise timeout.connect"
            throw UpstreamError(
                .timeout(.connect),
                detail: "\(host) at \(address) \(what)",
                told: "\(host) \(what)"
            )
        case .cancelled: throw UpstreamError(.cancelled, detail: "the client left before \(host) was reached")
        }
    }

    private static func refused(_ error: SystemError, _ host: String) -> UpstreamError {
        UpstreamError(
            error.code == ECONNREFUSED ? .connectionRefused : .unreachable,
            detail: "\(host) could not be reached: \(error); check that it runs",
            told: "\(host) could not be reached: \(String(cString: strerror(error.code))); check that it runs"
        )
    }
}

extension Problem {
    /// The answer to a request whose origin failed.
    package init(_ error: UpstreamError) {
        self.init(
            status: error.status,
            title: Self.title(error.kind),
            detail: error.told,
            proxyError: error.proxyStatus
        )
    }

    private static func title(_ kind: UpstreamError.Kind) -> String {
        switch kind {
        case .request: "Request cannot be sent"
        case .nameNotFound: "Name not found"
        case .resolver: "Name resolution failed"
        case .addressRefused: "Target not allowed"
        case .connectionRefused: "Connection refused"
        case .unreachable: "Origin unreachable"
        case .certificate: "Certificate not trusted"
        case .tls, .tlsFile: "TLS failed"
        case .timeout: "Origin timed out"
        case .closed, .truncated: "Origin closed"
        case .protocolViolation, .unexpectedStatus: "Origin broke the protocol"
        case .requestBody: "Request body failed"
        case .cancelled: "Cancelled"
        case .internal: "Internal failure"
        }
    }
}

extension RequestBody: RequestBodySource {
    /// As ``pull(into:)``, for transfers; why it failed stays in ``failure``.
    package func read(into buffer: UnsafeMutableRawBufferPointer) -> BodyRead {
        switch pull(into: buffer) {
        case .bytes(let count): .bytes(count)
        case .wait: .wait
        case .end: .end
        case .failed: .failed
        }
    }
}
