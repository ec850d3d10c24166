// `drydock top`: the traffic by service, as a picture that is drawn anew every few seconds.

import ArgumentParser
import DrydockDaemon
import Glibc
import ProxyServer
import ServiceCore

struct Top: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Show the traffic of all services while it goes on: rates, hits, failures, times, queues.",
        discussion: """
            Keys: r h e t s w n sort by requests, hits, errors, time, bytes saved, queues and name, once more reverses; \
            / filters by name; p pauses; + and - change the interval; q ends. A daemon that \
            restarts is asked again. With --once, or without a terminal, one picture is printed.
            """
    )
    @Option(
        help: ArgumentHelp("Seconds between two pictures, 0.2 to 60.", valueName: "seconds")
    )
    var interval = 2.0
    @Flag(help: "Print one picture, after one interval.")
    var once = false
    @Option(help: ArgumentHelp("Sort by requests, hits, errors, time, saved, waiting or name.", valueName: "column"))
    var sort: TrafficView.Order = .requests
    @Option(help: ArgumentHelp("Only services whose names contain this.", valueName: "part"))
    var service: String?
    @OptionGroup var options: AdminOptions

    func validate() throws {
        guard 0.2...60 ~= interval else { throw ValidationError("--interval \(interval) is not within 0.2 and 60") }
    }

    func run() throws {
        let client = try options.client
        if options.json { return print(try client.request("GET", .traffic).successful().text, terminator: "") }
        var view = TrafficView()
        view.order = sort
        view.filter = service ?? ""
        guard !once, isatty(STDIN_FILENO) == 1, isatty(STDOUT_FILENO) == 1 else {
            let first = try client.traffic
            usleep(UInt32(interval * 1_000_000))
            let second = try client.traffic
            let rates = TrafficRates(from: first, to: second)
            let (width, _) = Terminal.size
            let lines = view.lines(rates, second, version: DrydockVersion.current, width: width, height: .max)
            return print(lines.joined(separator: "\n"))
        }
        var screen = try Screen(client, view, interval)
        try screen.run()
    }
}

extension TrafficView.Order: ExpressibleByArgument {}

extension AdminClient {
    fileprivate var traffic: AdminTraffic {
        get throws { try request("GET", .traffic).successful().decode(AdminTraffic.self) }
    }
}

/// The terminal of the program.
enum Terminal {
    /// Columns and lines; those of COLUMNS and LINES, or 80 and 24, where it has none.
    static var size: (width: Int, height: Int) {
        var found = winsize()
        if ioctl(STDOUT_FILENO, UInt(TIOCGWINSZ), &found) == 0, found.ws_col > 0, found.ws_row > 0 {
            return (Int(found.ws_col), Int(found.ws_row))
        }
        let environment = processEnvironment()
        func number(_ name: String, _ instead: Int) -> Int {
            environment[name].flatMap(Int.init).map { max(20, $0) } ?? instead
        }
        return (number("COLUMNS", 80), number("LINES", 24))
    }
}

/// The picture on a terminal, and the keys that change it.
private struct Screen {
    private let client: AdminClient
    private var view: TrafficView
    private var interval: Double
    /// The filter while it is being typed; nil otherwise.
    private var typed: String?
    private var earlier: AdminTraffic
    private var later: AdminTraffic
    /// Why the daemon gave no answer the last time; nil if it gave one.
    private var trouble: String?

    init(_ client: AdminClient, _ view: TrafficView, _ interval: Double) throws {
        (self.client, self.view, self.interval) = (client, view, interval)
        earlier = try client.traffic
        later = earlier
    }

    mutating func run() throws {
        var old = termios()
        guard tcgetattr(STDIN_FILENO, &old) == 0 else {
            throw Failure(message: "the terminal does not tell its settings")
        }
        var raw = old
        raw.c_lflag &= ~tcflag_t(ICANON | ECHO)
        tcsetattr(STDIN_FILENO, TCSANOW, &raw)
        // Signals come as keys or end the wait; the terminal is put back in each case.
        for number in [SIGTERM, SIGHUP, SIGINT] { signal(number) { _ in Stopped.isWanted = 1 } }
        put("\u{1B}[?1049h\u{1B}[?25l")
        defer {
            put("\u{1B}[?25h\u{1B}[?1049l")
            tcsetattr(STDIN_FILENO, TCSANOW, &old)
        }
        while true {
            draw()
            guard try wait() else { return }
        }
    }

    /// Waits for a key or the end of the interval; false at the end.
    private mutating func wait() throws -> Bool {
        let end = Self.now + interval
        while Stopped.isWanted == 0 {
            let left = end - Self.now
            guard left > 0 else { break }
            var input = pollfd(fd: STDIN_FILENO, events: Int16(POLLIN), revents: 0)
            guard poll(&input, 1, Int32(left * 1_000) + 1) > 0 else { continue }
            var key: UInt8 = 0
            guard read(STDIN_FILENO, &key, 1) == 1 else { return false }
            if !press(key) { return false }
            draw()
        }
        if Stopped.isWanted != 0 { return false }
        guard !view.isPaused else { return true }
        do {
            let now = try client.traffic
            (earlier, later, trouble) = (later, now, nil)
        } catch let failure as Failure {
            trouble = failure.message
        }
        return true
    }

    /// - Returns: false for the key that ends the program.
    private mutating func press(_ key: UInt8) -> Bool {
        if var text = typed {
            switch key {
            case 0x0A, 0x0D: typed = nil
            case 0x1B:
                (typed, view.filter) = (nil, "")
            case 0x08, 0x7F:
                _ = text.popLast()
                (typed, view.filter) = (text, text)
            case 0x20...0x7E:
                text.append(Character(UnicodeScalar(key)))
                (typed, view.filter) = (text, text)
            default: break
            }
            return true
        }
        switch UnicodeScalar(key) {
        case "q": return false
        case "r": sort(.requests)
        case "h": sort(.hits)
        case "e": sort(.errors)
        case "t": sort(.time)
        case "s": sort(.saved)
        case "w": sort(.waiting)
        case "n": sort(.name)
        case "p": view.isPaused.toggle()
        case "/": (typed, view.filter) = ("", "")
        case "+": interval = min(60, interval * 2)
        case "-": interval = max(0.2, interval / 2)
        default: break
        }
        return true
    }

    private mutating func sort(_ order: TrafficView.Order) {
        view.isReversed = view.order == order ? !view.isReversed : false
        view.order = order
    }

    private func draw() {
        let (width, height) = Terminal.size
        let rates = TrafficRates(from: earlier, to: later)
        var lines = view.lines(rates, later, version: DrydockVersion.current, width: width, height: height - 1)
        while lines.count < height - 1 { lines.append("") }
        let help = "q quit  r h e t s w n sort  / filter  p pause  +- every \(interval) s"
        let last = typed.map { "/\($0)" } ?? trouble.map { "q quit  asked again, since \($0)" } ?? help
        lines.append(String(last.prefix(width)))
        // Each line is cleared behind its end, so that nothing flickers.
        put("\u{1B}[H" + lines.map { "\($0)\u{1B}[K" }.joined(separator: "\r\n") + "\u{1B}[J")
    }

    private func put(_ text: String) {
        var rest = Array(text.utf8)[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { write(STDOUT_FILENO, $0.baseAddress, $0.count) }
            guard count > 0 || errno == EINTR else { return }
            rest = rest.dropFirst(max(0, count))
        }
    }

    private static var now: Double {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
    }
}

/// Set by the handler of a signal.
private enum Stopped {
    // One aligned word, which a signal handler of this single thread sets and the main loop reads.
    nonisolated(unsafe) static var isWanted: sig_atomic_t = 0
}
