// Which connection libcurl may open, use again and send a request on: asked while it is on the stack, only to decide.

internal import CLibcurl
internal import EventLoop
import Glibc
internal import HTTPWire

extension EasyHandle {
    /// Before a socket is opened.
    func mayConnect(to address: UnsafePointer<curl_sockaddr>) -> Bool {
        guard let transfer else { return false }
        let length = min(Int(address.pointee.addrlen), MemoryLayout<sockaddr_storage>.size)
        guard let offset = MemoryLayout<curl_sockaddr>.offset(of: \.addr) else { return false }
        // The member `addr` is only the start: libcurl reserves room for the longest address behind it.
        let start = UnsafeRawPointer(address).advanced(by: offset).assumingMemoryBound(to: sockaddr.self)
        let target = SocketAddress(start, length: socklen_t(length))
        guard transfer.request.terms.target.allows(target) else {
            transfer.abort = .failed(.refused(transfer.place, at: target.host))
            return false
        }
        return true
    }

    /// Before libcurl resolves by itself, which it must not: the addresses were given to it.
    func mayResolve() -> Bool {
        guard let transfer else { return false }
        // A numeric host is no question for a name server.
        if transfer.destination?.isNumeric == true { return true }
        let detail = "the addresses of \(transfer.place) were lost: try again"
        return giveUp(transfer, .unresolved, UpstreamError(.resolver, detail: detail))
    }

    /// The connection stands, and the request would go out now; also asked before libcurl sends it again.
    func mayRequest(on name: ConnectionName) -> Bool {
        guard let transfer, transfer.client != nil, transfer.abort == nil else { return false }
        transfer.attempts += 1
        connection = name
        if transfer.attempts > 1, !transfer.mayResend {
            transfer.abort = .failed(transfer.resendError)
            return false
        }
        // Counts the connections made for this transfer.
        let isReused = c_curl_get_long(raw, CURLINFO_NUM_CONNECTS) == 0
        let rules = transfer.request.terms.target
        if rules != .any, !Self.allows(name, rules) {
            if isReused { return giveUp(transfer, .staleConnection, transfer.unaskedError) }
            transfer.abort = .failed(.refused(transfer.place, at: name.remote))
            return false
        }
        if isReused, multi.isSpent(name) || transfer.destination?.isTLS == true && c_curl_get_tls_pending(raw) > 0 {
            return giveUp(transfer, .staleConnection, transfer.unaskedError)
        }
        multi.noLongerIdle(name)
        transfer.deadlines.enter(transfer.request.hasBody ? .sending : .waiting, now: Monotonic.now())
        transfer.armTimer()
        return true
    }

    /// libcurl is stopped, to begin anew; the error is told where that does not help either.
    private func giveUp(_ transfer: Transfer, _ reason: Retry, _ error: UpstreamError) -> Bool {
        retry = reason
        transfer.abort = .failed(error)
        return false
    }

    private static func allows(_ name: ConnectionName, _ rules: TargetRules) -> Bool {
        guard let address = SocketAddress(numericHost: name.remote, port: 0) else { return false }
        return rules.allows(address)
    }
}
