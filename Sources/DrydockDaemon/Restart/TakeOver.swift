// What two daemons say to one another when one takes over from the other, over the admin socket; and the side of the new one.

import Configuration
import EventLoop
import Glibc
import HTTPWire
import ProxyServer
import TLS

/// The protocol of a take-over. After `POST /v1/take-over` and its 101, the old daemon sends an offer, a line of JSON with the
/// sockets as descriptors (SCM_RIGHTS). The new daemon answers ``take`` when all that it can know before has been found
/// good; the old one finishes what may change the store, closes it, and says ``gone``; the new one opens it, serves, and says
/// ``ready``. Until ``take`` the old daemon goes on as if nothing were; if it ends by a signal then, it says ``ending``.
enum TakeOver {
    /// The protocol's name in `Upgrade` (RFC 9110 section 7.8).
    static let name = "drydock-take-over"

    static let take = "take"
    static let gone = "gone"
    static let ending = "ending"
    static let ready = "ready"

    /// What the old daemon has.
    struct Offer: Codable {
        var version: String
        var pid: Int
        /// The roles of the sockets, in the order of the descriptors that come with it.
        var sockets: [String]
        /// The ticket keys.
        var keys: [UInt8]
    }

    /// Reads a line, which has at most so many bytes, with the descriptors that come with it; nil where the other side has
    /// ended. Blocks.
    static func line(
        from channel: Int32,
        atMost most: Int = 64 << 10
    ) throws(SystemError) -> (text: String, files: [Int32])? {
        var bytes: [UInt8] = []
        var files: [Int32] = []
        do throws(SystemError) {
            while bytes.count < most {
                let (more, passed) = try PassedFiles.receive(atMost: 4096, from: channel)
                files += passed
                if more.isEmpty { break }
                bytes += more
                if bytes.last == 0x0A { return (String(decoding: bytes.dropLast(), as: UTF8.self), files) }
            }
        } catch {
            for file in files { close(file) }
            throw error
        }
        for file in files { close(file) }
        return nil
    }

    /// Reads a line without descriptors, those that come with it are closed; nil where the other side has ended. Blocks.
    static func word(from channel: Int32) throws(SystemError) -> String? {
        guard let (text, files) = try line(from: channel) else { return nil }
        for file in files { close(file) }
        return text
    }
}

/// The daemon that this one takes over from.
///
/// Its channel and its sockets are closed by ``succeeded()`` or ``giveUp()``.
struct Predecessor: Sendable {
    let pid: Int
    let version: String
    let sockets: [KeptSocket]
    let ticketKeys: [UInt8]
    private let channel: Int32

    /// Seconds for which the answer to each step but ``letGo()`` is waited for.
    private static let patience = 30

    /// Asks the daemon at the admin address of a configuration for its sockets; nil if there is no daemon. Blocks.
    /// - Throws: `DaemonError.start` if that daemon can hand nothing over.
    static func find(
        _ configuration: Configuration,
        environment: [String: String]
    ) throws(DaemonError) -> Predecessor? {
        let address = try address(configuration, environment)
        guard let target = SocketAddress(unixPath: address) else {
            throw .start("--take-over: unix:\(address) is too long for the path of a socket")
        }
        let channel = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        guard channel >= 0 else { throw .start("--take-over: \(SystemError("socket"))") }
        guard target.withPointer({ connect(channel, $0, $1) }) == 0 else {
            let error = SystemError("connect to unix:\(address)")
            close(channel)
            if [ENOENT, ECONNREFUSED, ENOTDIR].contains(error.code) { return nil }
            throw .start("--take-over: \(error)")
        }
        PassedFiles.boundWaits(of: channel, seconds: patience)
        do throws(DaemonError) {
            return try Predecessor(channel, address)
        } catch {
            close(channel)
            throw error
        }
    }

    /// The path of the admin socket of a daemon with this configuration.
    private static func address(
        _ configuration: Configuration,
        _ environment: [String: String]
    ) throws(DaemonError) -> String {
        func path(of addresses: [ListenAddress], _ key: String) throws(DaemonError) -> String {
            for case .unix(let path) in addresses { return path }
            throw .start(
                "--take-over: '\(key)' names no unix socket, and sockets are handed over by one only; write \(key): unix:/PATH for both daemons, or stop the old one first"
            )
        }
        if let admin = configuration.admin { return try path(of: admin.listen, "admin") }
        if let named = try DaemonSockets.namedAdmin(environment) { return try path(of: [named], "DRYDOCK_ADMIN") }
        return DefaultAdmin.socket(in: DefaultAdmin.folder(environment: environment))
    }

    private init(_ channel: Int32, _ address: String) throws(DaemonError) {
        let failure = "--take-over: the daemon at unix:\(address)"
        let reply: (status: Int, reason: String, offer: (text: String, files: [Int32])?)
        do throws(SystemError) { reply = try Self.ask(channel) } catch {
            let isSilent = error.code == EAGAIN
            throw .start(isSilent ? "\(failure) has not answered for \(Self.patience) s" : "\(failure): \(error)")
        }
        guard reply.status == 101 else {
            throw .start("\(failure) cannot be taken over: \(reply.reason)")
        }
        guard let (text, files) = reply.offer else {
            throw .start("\(failure) has ended before it handed anything over; start again")
        }
        guard let offer = try? AdminJSON.decode(TakeOver.Offer.self, from: Array(text.utf8)),
            offer.sockets.count == files.count
        else {
            for file in files { close(file) }
            throw .start("\(failure) does not speak the protocol of this version; stop it first")
        }
        self.channel = channel
        (pid, version, ticketKeys) = (offer.pid, offer.version, offer.keys)
        sockets = zip(offer.sockets, files).compactMap { role, file in
            guard let role = ListenerRole(rawValue: role), ListeningSocket.listens(file),
                let socket = try? ListeningSocket.adopt(file)
            else {
                close(file)
                return nil
            }
            return KeptSocket(role: role, socket: socket)
        }
    }

    /// Asks for the offer.
    private static func ask(
        _ channel: Int32
    ) throws(SystemError) -> (status: Int, reason: String, offer: (text: String, files: [Int32])?) {
        let request = [
            "POST \(AdminPath.takeOver.rawValue) HTTP/1.1", "Host: localhost", "Connection: upgrade",
            "Upgrade: \(TakeOver.name)", "Content-Length: 0", "", "",
        ]
        try PassedFiles.send(Array(request.joined(separator: "\r\n").utf8), to: channel)
        let (status, reason) = try answer(channel)
        return (status, reason, status == 101 ? try TakeOver.line(from: channel) : nil)
    }

    /// The status of the answer, and why it is no 101. It is read byte by byte: descriptors come behind it.
    private static func answer(_ channel: Int32) throws(SystemError) -> (status: Int, reason: String) {
        var head: [UInt8] = []
        while !head.suffix(4).elementsEqual(Array("\r\n\r\n".utf8)), head.count < 16 << 10 {
            let next = try PassedFiles.receive(atMost: 1, from: channel).bytes
            if next.isEmpty { break }
            head += next
        }
        let words = String(decoding: head, as: UTF8.self).split(separator: " ", maxSplits: 2)
        let status = words.count > 1 ? Int(words[1]) ?? 0 : 0
        if status == 101 { return (status, "") }
        let body = try PassedFiles.receive(atMost: 16 << 10, from: channel).bytes
        let problem = try? AdminJSON.decode(AdminProblem.self, from: body)
        // A conflict names its own remedy.
        if status == 409, let problem { return (status, problem.detail) }
        return (status, "\(problem?.detail ?? "it answered \(status)"); stop it first")
    }

    /// Has the old daemon let go of its store, and waits for that; it finishes first what may change the store, for at most
    /// its `shutdown`. Blocks.
    /// - Throws: `DaemonError.start` if the old daemon does not let go.
    func letGo() throws(DaemonError) {
        let word: String?
        do throws(SystemError) {
            try PassedFiles.send(Array("\(TakeOver.take)\n".utf8), to: channel)
        } catch {
            // What it has said before it ended is read all the same.
            guard Self.isEnd(error) else { throw failure(error) }
        }
        PassedFiles.boundWaits(of: channel, seconds: 0)
        do throws(SystemError) { word = try TakeOver.word(from: channel) } catch {
            guard Self.isEnd(error) else { throw failure(error) }
            word = nil
        }
        // If it has ended without a word, its store is free as well.
        guard word == nil || word == TakeOver.gone else {
            throw .start("--take-over: the daemon with process \(pid) ends by a signal; start again when it has ended")
        }
    }

    private func failure(_ error: SystemError) -> DaemonError {
        .start("--take-over: the daemon with process \(pid): \(error)")
    }

    /// Whether an error means that the other side has ended.
    private static func isEnd(_ error: SystemError) -> Bool { [EPIPE, ECONNRESET].contains(error.code) }

    /// Tells the old daemon that this one serves.
    func succeeded() {
        try? PassedFiles.send(Array("\(TakeOver.ready)\n".utf8), to: channel)
        close(channel)
    }

    /// Ends the take-over: the old daemon goes on, or starts again if it has let go.
    func giveUp() { close(channel) }
}
