// Makes the sockets of the admin API anew if their files are removed: without them no command reaches the daemon.

import Configuration
import DownloadCore
import EventLoop
import Logging
import ProxyServer
import Synchronization

/// Watches the files of the admin sockets.
///
/// Sendable: the sockets are under a mutex; one look at a time is taken, on an I/O thread.
final class AdminSocketKeeper: Sendable {
    private struct State {
        var sockets: [ListeningSocket] = []
        /// The reason why a socket could not be made anew; kept so that it is logged once.
        var trouble: String?
        var isLooking = false
    }

    /// Nanoseconds between two looks.
    private static let pause: UInt64 = 2_000_000_000

    private let parts: DaemonParts
    private let state = Mutex(State())
    private let turns = Mutex<Schedule?>(nil)

    init(_ parts: DaemonParts) { self.parts = parts }

    /// Starts to watch the admin sockets of `server`, and to replace those whose files are removed.
    /// - Parameter replaced: told of each new socket and the one before it.
    func start(
        _ sockets: DaemonSockets,
        of server: Server<ProxyHandler>,
        on loop: EventLoop,
        replaced: @escaping @Sendable (_ new: ListeningSocket, _ lost: ListeningSocket) -> Void
    ) {
        guard sockets.admin.contains(where: \.ownsFile) else { return }
        state.withLock { $0.sockets = sockets.admin }
        let (mode, group) = (sockets.adminMode, sockets.adminGroup)
        let schedule = Schedule(every: Self.pause, on: loop) { [weak self, weak server] _ in
            guard let self, let server else { return }
            await look(server, mode: mode, group: group, replaced)
        }
        turns.withLock { $0 = schedule }
    }

    func stop() { turns.exchange(nil)?.cancel() }

    /// Looks once at every socket, and makes anew those whose files are gone.
    private func look(
        _ server: Server<ProxyHandler>,
        mode: UInt32,
        group: String?,
        _ replaced: @Sendable (ListeningSocket, ListeningSocket) -> Void
    ) async {
        for socket in state.withLock({ $0.sockets }) {
            let core = parts.core
            let made = try? await parts.files.run { () -> Result<ListeningSocket, ListeningError>? in
                guard socket.isLost else { return nil }
                // The socket may lie in the folder of the disk tier, which must be marked before anything else is made
                // in it.
                try? core.store.makeFoldersWhole()
                return Result { () throws(ListeningError) in
                    try ListeningSet.bindAnew(socket.address, mode: mode, group: group)
                }
            }
            switch made {
            case nil: continue
            case .success(let new)?:
                replaced(new, socket)
                await put(new, insteadOf: socket, server)
            case .failure(let error)?: tell(error, of: socket)
            }
        }
    }

    private func put(_ new: ListeningSocket, insteadOf socket: ListeningSocket, _ server: Server<ProxyHandler>) async {
        state.withLock { state in
            state.trouble = nil
            for index in state.sockets.indices where state.sockets[index].descriptor == socket.descriptor {
                state.sockets[index] = new
            }
        }
        await server.listen(on: new, insteadOf: socket, role: .admin)
        parts.logger.warning(
            "somebody has removed the socket \(new.address): it is made anew, and commands are taken there"
        )
    }

    private func tell(_ error: ListeningError, of socket: ListeningSocket) {
        let text = "\(error)"
        let isNews = state.withLock { state in
            defer { state.trouble = text }
            return state.trouble != text
        }
        guard isNews else { return }
        parts.logger.error(
            "no commands are taken: somebody has removed the socket \(socket.address), and it cannot be made anew: \(text); make its folder writable for the daemon's user"
        )
    }
}
