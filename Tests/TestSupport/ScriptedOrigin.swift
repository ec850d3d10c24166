// An HTTP/1.1 origin that does exactly what a test tells it, in threads of its own, and remembers every request.

import Foundation

/// Listens on 127.0.0.1, one thread per connection, keep-alive unless a reply ends the connection.
///
/// The handler runs once per request, after the request's body has been read, on the connection's thread.
package final class ScriptedOrigin: Sendable {
    package typealias Handler = @Sendable (OriginRequest) -> OriginReply
    /// Called on the connection's thread with the bytes of the body so far; may block to read slowly.
    package typealias BodyHook = @Sendable (OriginRequest) -> Void

    package let port: Int
    private let handler: Handler
    private let bodyHook: BodyHook?
    private let state: Monitor<State>

    private struct State {
        var listener: Int32
        var open: Set<Int32> = []
        var connections = 0
        var log: [OriginRequest] = []
    }

    package init(bodyHook: BodyHook? = nil, _ handler: @escaping Handler) throws {
        let listener = try Sockets.listen()
        port = listener.port
        self.handler = handler
        self.bodyHook = bodyHook
        state = Monitor(State(listener: listener.descriptor))
        acceptAll(listener.descriptor)
    }

    deinit { ScriptedOrigin.end(state) }

    /// `http://127.0.0.1:PORT`
    package var url: String { "http://127.0.0.1:\(port)" }
    package var authority: String { "127.0.0.1:\(port)" }

    /// Every request so far, in order of arrival (a request counts when its body has been read).
    package var log: [OriginRequest] { state.read { $0.log } }

    /// How many connections were accepted.
    package var connections: Int { state.read { $0.connections } }

    /// How many requests came, of all or of those with this method and target.
    package func requests(method: String? = nil, target: String? = nil) -> Int {
        state.read { ScriptedOrigin.count($0.log, method, target) }
    }

    /// Blocks until so many requests have come; `false` when `seconds` (default 120) passed first.
    @discardableResult
    package func waitForRequests(
        _ count: Int,
        method: String? = nil,
        target: String? = nil,
        seconds: Double = 120
    ) -> Bool {
        state.wait(seconds) { ScriptedOrigin.count($0.log, method, target) >= count }
    }

    /// Blocks until its peers have ended all but so many connections; `false` when `seconds` passed first.
    package func waitForEnds(allBut count: Int, seconds: Double = 120) -> Bool {
        state.wait(seconds) { $0.open.count <= count }
    }

    /// Forgets the requests so far.
    package func forgetRequests() {
        state.update { $0.log = [] }
    }

    /// Stops listening and ends every connection; the port refuses from now on.
    package func stop() { ScriptedOrigin.end(state) }

    /// Listens again, on the same port.
    package func restart() throws {
        let listener = try Sockets.listen(port: port)
        state.update { $0.listener = listener.descriptor }
        acceptAll(listener.descriptor)
    }

    private static func count(_ log: [OriginRequest], _ method: String?, _ target: String?) -> Int {
        log.count { (method == nil || $0.method == method) && (target == nil || $0.target == target) }
    }

    private static func end(_ state: Monitor<State>) {
        state.update { state in
            // The threads close the descriptors themselves; shutting down wakes them.
            if state.listener >= 0 { shutdown(state.listener, Int32(SHUT_RDWR)) }
            state.listener = -1
            for connection in state.open { shutdown(connection, Int32(SHUT_RDWR)) }
        }
    }

    private func acceptAll(_ listener: Int32) {
        let (state, handler, bodyHook) = (state, handler, bodyHook)
        Threads.start("origin") {
            while let descriptor = Sockets.accept(listener) {
                let number = state.update { state -> Int? in
                    guard state.listener == listener else { return nil }
                    state.open.insert(descriptor)
                    state.connections += 1
                    return state.connections
                }
                guard let number else {
                    close(descriptor)
                    continue
                }
                Threads.start("origin connection") {
                    let connection = OriginConnection(descriptor: descriptor, number: number)
                    connection.serve(handler: handler, bodyHook: bodyHook) { request in
                        state.update { $0.log.append(request) }
                    }
                    state.update { state in
                        state.open.remove(descriptor)
                        close(descriptor)
                    }
                }
            }
            close(listener)
        }
    }
}
