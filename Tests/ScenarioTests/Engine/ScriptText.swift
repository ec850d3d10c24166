// The small languages inside a line of a script: escapes, durations, and templates such as {now-1h} and {url}.

import Foundation

/// Why a piece of a line cannot be read.
struct ScriptTextError: Error {
    var message: String

    init(_ message: String) { self.message = message }
}

enum ScriptText {
    /// `\n`, `\r`, `\t`, `\\` and `\xHH` as the bytes they stand for.
    static func unescape(_ text: some StringProtocol) throws(ScriptTextError) -> [UInt8] {
        var bytes = [UInt8]()
        var rest = Array(text.utf8)[...]
        while let byte = rest.popFirst() {
            guard byte == UInt8(ascii: "\\") else {
                bytes.append(byte)
                continue
            }
            switch rest.popFirst() {
            case UInt8(ascii: "n"): bytes.append(10)
            case UInt8(ascii: "r"): bytes.append(13)
            case UInt8(ascii: "t"): bytes.append(9)
            case UInt8(ascii: "\\"): bytes.append(UInt8(ascii: "\\"))
            case UInt8(ascii: "x"):
                guard let value = UInt8(String(decoding: rest.prefix(2), as: UTF8.self), radix: 16), rest.count >= 2
                else { throw ScriptTextError("\\x takes two hexadecimal digits") }
                bytes.append(value)
                rest = rest.dropFirst(2)
            default: throw ScriptTextError("an escape is one of \\n \\r \\t \\\\ \\xHH")
            }
        }
        return bytes
    }

    /// `59s`, `5m`, `2h` or `10d`, in seconds.
    static func seconds(_ text: some StringProtocol) throws(ScriptTextError) -> Int64 {
        let units: [Character: Int64] = ["s": 1, "m": 60, "h": 3600, "d": 86_400]
        guard let unit = text.last.flatMap({ units[$0] }), let count = Int64(text.dropLast()), count >= 0,
            count < 100_000_000_000 / unit
        else { throw ScriptTextError("“\(text)” is no duration; write 59s, 5m, 2h or 10d") }
        return count * unit
    }
}

/// What templates stand for at one moment, at one side of the daemon.
struct ScriptScope: Sendable {
    /// In the daemon's time, in seconds since 1970.
    var now: Int64
    /// `http://127.0.0.1:PORT`, of the origin in what the origin says and of the daemon in what the client sees.
    var authority: String
    /// The scenario's own path, as this side sees it.
    var path: String

    /// Puts values in the place of templates; what is no template stays as it is.
    func expand(_ text: String) throws(ScriptTextError) -> String {
        guard text.contains("{") else { return text }
        var result = ""
        var rest = text[...]
        while let open = rest.firstIndex(of: "{") {
            result += rest[..<open]
            rest = rest[open...]
            guard let close = rest.firstIndex(of: "}") else { break }
            let name = rest[rest.index(after: open)..<close]
            if let value = try value(name) {
                result += value
            } else {
                result += rest[open...close]
            }
            rest = rest[rest.index(after: close)...]
        }
        return result + rest
    }

    private func value(_ name: Substring) throws(ScriptTextError) -> String? {
        switch name {
        case "url": return "http://\(authority)\(path)"
        case "path": return path
        case "authority": return authority
        default: break
        }
        for form in DateForm.allCases where name.hasPrefix(form.rawValue) {
            let offset = name.dropFirst(form.rawValue.count)
            guard let sign = offset.first else { return form.text(now) }
            guard sign == "+" || sign == "-" else { return nil }
            let seconds = try ScriptText.seconds(offset.dropFirst())
            return form.text(sign == "+" ? now + seconds : now - seconds)
        }
        return nil
    }
}

/// The three forms of a date (RFC 9110 section 5.6.7).
enum DateForm: String, CaseIterable {
    case preferred = "now"
    case rfc850
    case asctime

    func text(_ unixTime: Int64) -> String {
        let form =
            switch self {
            case .preferred: "%a, %d %b %Y %H:%M:%S GMT"
            case .rfc850: "%A, %d-%b-%y %H:%M:%S GMT"
            case .asctime: "%a %b %e %H:%M:%S %Y"
            }
        var seconds = time_t(unixTime)
        var parts = tm()
        gmtime_r(&seconds, &parts)
        var text = [CChar](repeating: 0, count: 64)
        let length = strftime(&text, text.count, form, &parts)
        return String(decoding: text[..<length].map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }

    /// Reads a date in the preferred form; nil for anything else.
    static func seconds(_ date: String) -> Int64? {
        let words = date.split(separator: " ")
        let months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
        guard words.count == 6, words[5] == "GMT", let day = Int32(words[1]), let year = Int32(words[3]),
            let month = months.firstIndex(of: String(words[2]))
        else { return nil }
        let clock = words[4].split(separator: ":").compactMap { Int32($0) }
        guard clock.count == 3 else { return nil }
        var parts = tm()
        (parts.tm_year, parts.tm_mon, parts.tm_mday) = (year - 1900, Int32(month), day)
        (parts.tm_hour, parts.tm_min, parts.tm_sec) = (clock[0], clock[1], clock[2])
        let seconds = Int64(timegm(&parts))
        return preferred.text(seconds) == date ? seconds : nil
    }
}
