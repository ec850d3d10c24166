// Decides which connection libcurl may open, reuse and send a request on. libcurl is on the stack during these
// calls, so they call nothing of its multi handle.

import CLibcurl
import EventLoop
import Glibc
import HTTPWire

extension EasyHandle {
    /// Before a socket is opened.
    func mayConnect(to address: UnsafePointer<curl_sockaddr>) -> Bool {
        guard let transfer else { return false }
        // libcurl opens a connection before it repeats a request, and may find that it cannot: by then the request may
        // have had its effect.
        guard transfer.mayGoOut else {
            refusal = transfer.resendError
            return false
        }
        let length = min(Int(address.pointee.addrlen), MemoryLayout<sockaddr_storage>.size)
        guard let offset = MemoryLayout<curl_sockaddr>.offset(of: \.addr) else { return false }
        // The member `addr` is only the start: libcurl reserves room for the longest address behind it.
        let start = UnsafeRawPointer(address).advanced(by: offset).assumingMemoryBound(to: sockaddr.self)
        let target = SocketAddress(start, length: socklen_t(length))
        guard transfer.dialRules.allows(target) else {
            refusal = .refused(transfer.place, at: target.host)
            return false
        }
        return true
    }

    /// Before libcurl resolves by itself, which it must not: the addresses were given to it.
    func mayResolve() -> Bool {
        guard let transfer else { return false }
        // A numeric host needs no resolution.
        if transfer.destination?.isPinned == false { return true }
        return startAnew(.unresolved, lostError(transfer))
    }

    private func lostError(_ transfer: Transfer) -> UpstreamError {
        UpstreamError(.resolver, detail: "the addresses of \(transfer.place) were lost: try again")
    }

    /// Whether the request may be sent on the connection, which is open; also called before libcurl repeats a request.
    func mayRequest(on name: ConnectionName) -> Bool {
        guard let transfer, transfer.client != nil, !transfer.isGivenUp, refusal == nil else { return false }
        connection = name
        guard transfer.mayGoOut else {
            refusal = transfer.resendError
            return false
        }
        // Counts the connections made for this transfer.
        let isReused = c_curl_get_long(raw, CURLINFO_NUM_CONNECTS) == 0
        let address = SocketAddress(numericHost: name.remote, port: 0)
        guard address.map(transfer.dialRules.allows) ?? false else {
            if isReused { return startAnew(.staleConnection, transfer.unaskedError) }
            refusal = .refused(transfer.place, at: name.remote)
            return false
        }
        // libcurl looks for idle connections by the name alone, which may lead elsewhere by now.
        if transfer.destination?.isPinned != false, !addresses.contains(where: { $0.ipBytes == address?.ipBytes }) {
            return startAnew(isReused ? .staleConnection : .unresolved, lostError(transfer))
        }
        if isReused, multi.isSpent(name) || transfer.destination?.isTLS == true && c_curl_get_tls_pending(raw) > 0 {
            return startAnew(.staleConnection, transfer.unaskedError)
        }
        multi.noLongerIdle(name)
        transfer.goesOut()
        return true
    }

    /// libcurl is stopped before it sends anything, and the transfer begins anew; the error is told where that does not
    /// help either.
    private func startAnew(_ reason: Retry, _ error: UpstreamError) -> Bool {
        retry = reason
        refusal = error
        return false
    }
}
