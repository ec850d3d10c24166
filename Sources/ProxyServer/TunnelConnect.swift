// How a tunnel reaches its other side: connects with a deadline, one address after the other.

package import EventLoop
import Glibc
import HTTPWire

/// Why no connection came about.
package enum ConnectFailure: Error, Sendable, Equatable {
    /// There was no address to try.
    case noAddress
    case timedOut
    /// The last address that was tried, and why it failed.
    case failed(SystemError)
    /// The client has left.
    case cancelled

    /// The answer to the client; `target` is what it asked for.
    package func problem(target: String) -> Problem {
        switch self {
        case .noAddress:
            Problem(
                status: 502,
                title: "Name not found",
                detail: "\(target) has no address; check the name",
                proxyError: "dns_error"
            )
        case .timedOut:
            Problem(
                status: 504,
                title: "Connection timed out",
                detail: "\(target) did not take the connection in time; try again, or raise timeout.connect",
                proxyError: "connection_timeout"
            )
        case .failed(let error):
            Problem(
                status: 502,
                title: "Connection failed",
                detail: "\(target) could not be reached: \(error); check that it runs",
                proxyError: error.code == ECONNREFUSED ? "connection_refused" : "destination_ip_unroutable"
            )
        case .cancelled:
            Problem(status: 502, title: "Cancelled", detail: "the client left before \(target) was reached")
        }
    }
}

extension Tunnel {
    /// Connects to the first address that takes the connection.
    ///
    /// - Parameters:
    ///   - addresses: resolved and checked against the forward rules.
    ///   - timeout: nanoseconds for all of them together.
    /// - Returns: a non-blocking descriptor, the caller's to close.
    package static func connect(
        to addresses: [SocketAddress],
        timeout: UInt64,
        context: LoopContext,
        on loop: isolated EventLoop
    ) async throws(ConnectFailure) -> Int32 {
        let now = Monotonic.now()
        let deadline = now &+ min(timeout, .max - now)
        var failure = ConnectFailure.noAddress
        for address in addresses {
            do throws(ConnectFailure) {
                return try await connect(to: address, until: deadline, context: context, on: loop)
            } catch {
                failure = error
                if error == .cancelled || error == .timedOut { break }
            }
        }
        throw failure
    }

    private static func connect(
        to address: SocketAddress,
        until deadline: UInt64,
        context: LoopContext,
        on loop: isolated EventLoop
    ) async throws(ConnectFailure) -> Int32 {
        let descriptor: Int32
        do throws(SystemError) {
            descriptor = try Socket.connect(to: address)
        } catch {
            throw .failed(error)
        }
        let result = await context.wait(for: descriptor, .write, until: deadline, on: loop)
        let error = Socket.pendingError(descriptor)
        switch result {
        case .ready where error == 0:
            Socket.setNoDelay(descriptor)
            return descriptor
        case .ready:
            Socket.close(descriptor)
            throw .failed(SystemError("connect \(address)", code: error))
        case .timedOut:
            Socket.close(descriptor)
            throw .timedOut
        case .cancelled:
            Socket.close(descriptor)
            throw .cancelled
        }
    }
}
