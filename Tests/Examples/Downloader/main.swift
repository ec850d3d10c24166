// A command-line downloader: many URLs at once, each into a file of the working folder, with a bar for each of them.

import Drydock
import Foundation

/// The lines of all downloads: drawn again and again on a terminal, and written once each where the output is none.
actor Display {
    private var lines: [String]
    private let isTerminal = isatty(STDOUT_FILENO) == 1
    private var drawn = ContinuousClock.now
    private var count = 0

    init(_ names: [String]) { lines = names.map { "\(Self.bar(0))  \($0)" } }

    func show(_ progress: DownloadProgress, of name: String, at line: Int) {
        let share = progress.fraction.map { Self.bar($0) } ?? Self.bar(0)
        lines[line] = "\(share)  \(name)  \(progress.completed) bytes"
        // Ten times a second is as often as anybody can read it.
        if isTerminal, drawn.duration(to: .now) > .milliseconds(100) { draw() }
    }

    func end(_ text: String, at line: Int) {
        lines[line] = text
        if isTerminal { draw() } else { write(text + "\n") }
    }

    private func draw() {
        // Back to the first line, and each line anew.
        let up = count > 0 ? "\u{1B}[\(count)A" : ""
        write(up + lines.map { "\r\u{1B}[2K\($0)\n" }.joined())
        (count, drawn) = (lines.count, .now)
    }

    private func write(_ text: String) { FileHandle.standardOutput.write(Data(text.utf8)) }

    private static func bar(_ fraction: Double) -> String {
        let full = Int(fraction * 20)
        let percent = String(Int(fraction * 100))
        let (left, padding) = (String(repeating: "#", count: full), String(repeating: " ", count: 3 - percent.count))
        return "[\(left)\(String(repeating: ".", count: 20 - full))] \(padding)\(percent)%"
    }
}

/// Downloads into a file, and tells of it.
func download(_ url: URL, to name: String, _ display: Display, at line: Int) async -> Bool {
    do {
        for try await event in DownloadManager.shared.events(for: url, to: URL(fileURLWithPath: name)) {
            if case .progress(let progress) = event { await display.show(progress, of: name, at: line) }
            if case .finished(let result) = event { await display.end("\(result.outcome)  \(name)", at: line) }
        }
        return true
    } catch {
        await display.end("failed  \(name)  \(error)", at: line)
        return false
    }
}

let urls = CommandLine.arguments.dropFirst().compactMap { URL(string: $0) }
guard !urls.isEmpty else {
    print("usage: DrydockDownloader URL...")
    exit(2)
}
var names: [String] = []
for url in urls {
    // The last part of the path, and a number where two are the same.
    let last = url.lastPathComponent
    let name = last.isEmpty || last == "/" ? url.host ?? "download" : last
    let others = names.count { $0 == name || $0.hasPrefix(name + ".") }
    names.append(others == 0 ? name : "\(name).\(others + 1)")
}
let display = Display(names)
let failures = await withTaskGroup(of: Bool.self) { group in
    for (line, (url, name)) in zip(urls, names).enumerated() {
        group.addTask { await download(url, to: name, display, at: line) }
    }
    var failures = 0
    for await isWhole in group where !isWhole { failures += 1 }
    return failures
}
await DownloadManager.shared.close()
exit(failures == 0 ? 0 : 1)
