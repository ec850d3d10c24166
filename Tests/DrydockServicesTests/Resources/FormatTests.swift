// What bodies become: text, JSON of every kind, property lists, images, mapped documents.

import Drydock
import DrydockTesting
import Foundation
import HTTPTypes
import LibrarySupport
import Testing

@testable import DrydockServices

@Suite struct FormatTests {
    private func read<Model>(
        _ format: ResponseFormat<Model>,
        _ data: Data,
        type: String? = nil
    ) throws -> Model {
        var response = HTTPResponse(status: .ok)
        response.headerFields[.contentType] = type
        let url = try #require(URL(string: "https://a.test/"))
        return try format.read(DownloadResult(url: url, outcome: .downloaded, head: response, data: data))
    }

    private func read<Model>(_ format: ResponseFormat<Model>, _ text: String) throws -> Model {
        try read(format, Data(text.utf8))
    }

    @Test func bytesTextAndTheWhole() throws {
        #expect(try read(.data, "héé") == Data("héé".utf8))
        #expect(try read(.text, "héé") == "héé")
        #expect(try read(.text, "") == "")
        #expect(try read(.text, Data([0xE9]), type: "text/plain; charset=\"ISO-8859-1\"") == "é")
        #expect(throws: MappingError.self) { try read(.text, Data([0xE9])) }
        #expect(throws: MappingError.invalidText("the character set 'koi8-r' is unknown here")) {
            try read(.text, Data([0xE9]), type: "text/plain; charset=koi8-r")
        }
        #expect(try read(.raw, "a").text == "a")
        #expect(try read(ResponseFormat<String>.text.map { $0.count }, "abc") == 3)
    }

    @Test(arguments: [
        ("", "empty"), ("{", "invalidJSON"), ("[1] 2", "invalidJSON"), ("{}", "object"), ("[1]", "array"),
        ("1.50", "value"), ("null", "value"),
    ]) func kindsOfJSONAreToldApart(text: String, kind: String) throws {
        func found<Model>(_ format: ResponseFormat<Model>) -> String {
            do {
                _ = try read(format, text)
                return "ok"
            } catch let error as MappingError {
                return "\(error)".hasPrefix("it is no JSON: ") ? "invalidJSON" : "\(error)"
            } catch {
                return "\(error)"
            }
        }
        let fault = kind == "empty" ? "there is no body" : kind
        let isBroken = kind == "empty" || kind == "invalidJSON"
        #expect(found(.jsonValue) == (isBroken ? fault : "ok"))
        #expect(found(.jsonObject) == (isBroken ? fault : kind == "object" ? "ok" : "it is JSON, and no object"))
        #expect(found(.jsonArray) == (isBroken ? fault : kind == "array" ? "ok" : "it is JSON, and no array"))
    }

    @Test func aValueOfJSONIsLossless() throws {
        let text = #"{"z":1.50,"a":[true,null,"x\n"],"big":123456789012345678901234567890,"o":{"i":-7}}"#
        let value = try read(.jsonObject, text)
        #expect(value.description == text)
        #expect(value.members?.map(\.name) == ["z", "a", "big", "o"])
        #expect(value["z"]?.double == 1.5 && value["z"]?.int == nil)
        #expect(value["a"]?[0]?.bool == true && value["a"]?[1]?.isNull == true && value["a"]?[2]?.string == "x\n")
        #expect(value["a"]?[3] == nil && value["a"]?["x"] == nil && value["none"] == nil && value[0] == nil)
        #expect(value["o"]?["i"]?.int == -7)
        #expect(try value["o"]?.decode([String: Int].self) == ["i": -7])
        #expect(throws: MappingError.self) { try JSONValue(Data("{]".utf8)) }
        let (number, none) = (1.5, Double.infinity)
        #expect(JSONValue(number) == 1.5 && JSONValue(none) == nil)
        struct Holder: Codable, Equatable {
            var extra: JSONValue
        }
        let holder = Holder(extra: ["a": [1, 2.5, "x", nil, true], "b": ["c": [:]]])
        let copy = try JSONDecoder().decode(Holder.self, from: try JSONEncoder().encode(holder))
        #expect(copy.extra["a"] == holder.extra["a"] && copy.extra["b"] == holder.extra["b"])
    }

    @Test(arguments: ["data.users", "data.list.1", "data.list.0.inner"]) func aPathLeadsToTheRoot(path: String) throws {
        let user = #"{"name": "Ada"}"#
        let text = #"{"data": {"users": \#(user), "list": [{"inner": \#(user)}, \#(user)]}}"#
        #expect(try read(.json(at: path), text) == User(name: "Ada"))
        let tree: JSONValue = try JSONValue(Data(text.utf8))
        let list = try PropertyListEncoder().encode(tree)
        #expect(try read(.propertyList(at: path), list) == User(name: "Ada"))
    }

    @Test(arguments: [
        ("data.none", "data.none"), ("data.list.9223372036854775807", "data.list.9223372036854775807"),
        ("data.list.-1", "data.list.-1"), ("data.list.2", "data.list.2"), ("data.list.x", "data.list.x"), ("x.y", "x"),
    ])
    func aPathThatLeadsNowhereIsNamed(path: String, keyPath: String) throws {
        #expect(throws: MappingError.missingValue(keyPath)) {
            try read(ResponseFormat<User>.json(at: path), #"{"data": {"list": [1, 2]}}"#)
        }
    }

    @Test func aDecoderMayBeTheProgramsOwn() throws {
        struct Event: Codable, Equatable {
            var startTime: Date
        }
        let decoder = JSONDecoder()
        decoder.keyDecodingStrategy = .convertFromSnakeCase
        decoder.dateDecodingStrategy = .secondsSince1970
        let event = Event(startTime: Date(timeIntervalSince1970: 5))
        #expect(try read(.json(decoder: decoder), #"{"start_time": 5}"#) == event)
        #expect(try read(.json, #"{"startTime": "1970-01-01T00:00:05Z"}"#) == event)
        #expect(throws: DecodingError.self) { try read(ResponseFormat<Event>.json, #"{"startTime": true}"#) }
        #expect(try read(.json(at: "x", decoder: decoder), #"{"x": 7}"#) == Date(timeIntervalSince1970: 7))
    }

    @Test func propertyListsAreDecoded() throws {
        let encoder = PropertyListEncoder()
        for form in [PropertyListSerialization.PropertyListFormat.xml, .binary] {
            encoder.outputFormat = form
            #expect(try read(.propertyList, encoder.encode(User(name: "Ada"))) == User(name: "Ada"))
        }
        #expect(throws: MappingError.empty) { try read(ResponseFormat<User>.propertyList, "") }
        #expect(throws: DecodingError.self) { try read(ResponseFormat<User>.propertyList, "{}x") }
        #expect(try read(ResponseFormat<User>.propertyList.optional, "") == nil)
    }

    /// Anything, however deep it is.
    private indirect enum Nested: Decodable, Sendable {
        case list([Nested])
        case other

        init(from decoder: any Decoder) throws {
            guard var list = try? decoder.unkeyedContainer() else {
                self = .other
                return
            }
            var values: [Nested] = []
            while !list.isAtEnd { values.append(try list.decode(Nested.self)) }
            self = .list(values)
        }
    }

    /// Arrays within one another, each of which names the next one so many times.
    private static func binaryList(levels: Int, times: Int) -> Data {
        var bytes = Array("bplist00".utf8)
        var offsets: [Int] = []
        func big(_ value: Int, _ size: Int) -> [UInt8] { (0..<size).reversed().map { UInt8(value >> ($0 * 8) & 255) } }
        for level in 0..<levels {
            offsets.append(bytes.count)
            bytes.append(0xA0 | UInt8(times))
            for _ in 0..<times { bytes += big(level + 1, 2) }
        }
        offsets.append(bytes.count)
        bytes += [0x51, 0x61]
        let table = bytes.count
        bytes += offsets.flatMap { big($0, 4) } + [0, 0, 0, 0, 0, 0, 4, 2]
        return Data(bytes + big(offsets.count, 8) + big(0, 8) + big(table, 8))
    }

    @Test("A property list that would exhaust the decoder is refused", arguments: [120, 200, 100_000])
    func deepPropertyLists(levels: Int) throws {
        let text =
            "<?xml version=\"1.0\"?><plist>" + String(repeating: "<array><!-- </array> -->", count: levels)
            + String(repeating: "</array>", count: levels) + "</plist>"
        var lists = [Data(text.utf8)]
        lists.append(Data([0xFF, 0xFE] + text.utf16.flatMap { [UInt8($0 & 255), UInt8($0 >> 8)] }))
        if levels < 65_536 { lists.append(Self.binaryList(levels: levels, times: 1)) }
        for list in lists {
            if levels < 128 {
                _ = try? read(ResponseFormat<Nested>.propertyList, list)
                #expect(throws: Never.self) { try PropertyListDecoder().decode(Nested.self, from: lists[0]) }
            } else {
                let reason = MappingError.invalidPropertyList("it is nested more than 128 levels deep")
                #expect(throws: reason) { try read(ResponseFormat<Nested>.propertyList, list) }
                #expect(throws: reason) { try read(ResponseFormat<User>.propertyList(at: "a.b"), list) }
            }
        }
    }

    @Test func aPropertyListThatNamesItsValuesTooOftenIsRefused() throws {
        #expect(try read(ResponseFormat<Nested>.propertyList.map { _ in true }, Self.binaryList(levels: 10, times: 2)))
        for (levels, times) in [(100, 2), (17, 2), (6, 14)] {
            let list = Self.binaryList(levels: levels, times: times)
            let error = #expect(throws: MappingError.self) { try read(ResponseFormat<Nested>.propertyList, list) }
            guard case .invalidPropertyList(let reason) = error else { return #expect(Bool(false), "\(error as Any)") }
            #expect(reason.hasPrefix("it has more than 100000 values"))
        }
    }

    @Test func formatsSayWhatTheyAccept() async throws {
        func asked<Model: Sendable>(_ format: ResponseFormat<Model>) async throws -> String {
            let (loader, transport) = makeLoader(.json("[]"))
            _ = try? await loader.load(format, from: "/a")
            let request = try #require(transport.requests.first)
            return "\(request.head.headerFields[.accept] ?? "-") \(request.options.expectation)"
        }
        #expect(try await asked(.data) == "- anything")
        #expect(try await asked(.nothing) == "- anything")
        #expect(try await asked(.text) == "text/*, */*;q=0.5 anything")
        #expect(try await asked(.jsonObject) == "application/json, */*;q=0.5 jsonObject")
        #expect(try await asked(.jsonArray) == "application/json, */*;q=0.5 jsonArray")
        #expect(try await asked(ResponseFormat<User>.propertyList) == "application/x-plist, */*;q=0.5 propertyList")
        #expect(try await asked(.imageHeader) == "image/* image")
        let csv = ResponseFormat<Int>(accept: "text/csv") { $0.data.count }
        #expect(try await asked(csv.map { $0 + 1 }) == "text/csv anything")
    }

    // MARK: - Images

    /// Bytes as hexadecimal digits, with spaces anywhere; `'text'` stands for its bytes.
    private static func bytes(_ text: String) -> Data {
        var result = Data()
        for word in text.split(separator: " ") {
            if word.hasPrefix("'") {
                result += Data(word.dropFirst().dropLast().replacing("_", with: " ").utf8)
            } else {
                for index in stride(from: 0, to: word.count, by: 2) {
                    result.append(UInt8(word.dropFirst(index).prefix(2), radix: 16) ?? 0)
                }
            }
        }
        return result
    }

    @Test(
        arguments: [
            ("89504E470D0A1A0A 0000000D 'IHDR' 00000140 000000F0", .png, 320, 240),
            ("'GIF89a' 4001 F000", .gif, 320, 240),
            ("FFD8 FFE0 0004 0000 FFFF FFC2 0011 08 00F0 0140 03", .jpeg, 320, 240),
            ("FFD8 FFE0 0004 0000 FFDA", .jpeg, nil, nil),
            ("'RIFF' 00000000 'WEBP' 'VP8X' 0A000000 00000000 3F0100 EF0000", .webp, 320, 240),
            ("'RIFF' 00000000 'WEBP' 'VP8L' 0A000000 2F 3FC13B00", .webp, 320, 240),
            ("'RIFF' 00000000 'WEBP' 'VP8_' 0A000000 000000 9D012A 4001 F000", .webp, 320, 240),
            ("'BM' 00000000 00000000 00000000 28000000 40010000 10FFFFFF", .bmp, 320, 240),
            ("'BM' 00000000 00000000 00000000 0C000000 4001 F000", .bmp, 320, 240),
            ("00000100 0100 00 20", .icon, 256, 32), ("49492A00 08000000", .tiff, nil, nil),
            // SHORT, LONG, and a directory behind the pixels; in both orders.
            (
                "49492A00 08000000 0300 FE00 0400 01000000 00000000 0001 0300 01000000 40010000 0101 0300 01000000 F0000000",
                .tiff, 320, 240
            ),
            ("4D4D002A 00000008 0002 0100 0003 00000001 0140FFFF 0101 0004 00000001 000000F0", .tiff, 320, 240),
            (
                "4D4D002A 0000000C FFFFFFFF 0002 0101 0004 00000001 000000F0 0100 0004 00000001 00000140", .tiff, 320,
                240
            ),
            // Offsets and counts that lead nowhere, a type that is no number, several values.
            ("49492A00 FFFFFFFF", .tiff, nil, nil), ("49492A00 00000000 0000", .tiff, nil, nil),
            ("4D4D002A 00000008 FFFF 0100 0003 00000001 01400000", .tiff, nil, nil),
            ("4D4D002A 00000008 0002 0100 0002 00000001 01400000 0101 0004 00000001 000000F0", .tiff, nil, nil),
            ("4D4D002A 00000008 0002 0100 0003 00000002 01400001 0101 0004 00000001 000000F0", .tiff, nil, nil),
            (
                "00000018 'ftyp' 'avif' 00000000 'ispe' 00000000 00000010 00000010 'ispe' 00000000 00000140 000000F0",
                .avif, 320, 240
            ),
            (
                "00000018 'ftyp' 'avif' 00000000 'ispe' 00000000 FFFFFFFF FFFFFFFF", .avif, 4_294_967_295,
                4_294_967_295
            ),
            ("00000018 'ftyp' 'heic' 00000000", .heic, nil, nil), ("89504E470D0A1A0A 0000", .png, nil, nil),
        ] as [(String, ImageFormat, Int?, Int?)]
    ) func headersOfImagesAreRead(
        text: String,
        format: ImageFormat,
        width: Int?,
        height: Int?
    ) throws {
        let header = ImageHeader(mediaType: format.rawValue, width: width, height: height)
        #expect(try read(.imageHeader, Self.bytes(text)) == header)
        // Wherever it is cut, it is the same format or none, and no size is made up.
        for length in 0..<Self.bytes(text).count {
            guard let cut = try? ImageHeader(Self.bytes(text).prefix(length)) else { continue }
            #expect(cut.mediaType == format.rawValue)
            if format != .avif { #expect(cut.width == nil || cut == header) }
        }
    }

    @Test(arguments: ["", "hello", "<html>", "{\"a\": 1}"]) func whatIsNoImageIsRefused(text: String) {
        #expect(throws: MappingError.invalidImage) { try read(.imageHeader, text) }
    }

    // MARK: - Formats of resources

    /// Each of them is a format that is changed where it is named.
    private struct Counted: DrydockServices.Resource {
        let endpoint: Endpoint = "/x"
        var format: ResponseFormat<Int> { .jsonObject.map { $0.members?.count ?? 0 } }
    }

    @Test func aFormatIsChangedWhereItIsNamed() async throws {
        let (loader, _) = makeLoader(.json(#"{"a": 1, "b": 2}"#))
        #expect(try await loader.call(Counted()).model == 2)
        #expect(try await loader.load(.text.map { $0.count }, from: "/x").model == 16)
        #expect(try await loader.load(.data.map { $0.isEmpty }, from: "/x").model == false)
        let list: ResponseFormat<Bool> = .jsonArray.map { $0.isEmpty }
        #expect(throws: MappingError.notAnArray) { try read(list, "{}") }
    }

    private struct Nothing: DrydockServices.Resource {
        typealias Model = Void
        let endpoint: Endpoint = .delete("/x")
    }

    private struct Whole: DrydockServices.Resource {
        typealias Model = DownloadResult
        let endpoint: Endpoint = "/x"
    }

    @Test func nothingAndTheWholeNeedNoFormat() async throws {
        let (loader, transport) = makeLoader(.text("hello"))
        try await loader.call(Nothing())
        #expect(try await loader.call(Whole()).model.data == Data("hello".utf8))
        #expect(transport.requests.map(\.method) == [.delete, .get])
    }

    // MARK: - Mappings

    @Test func aMappingChangesTheShape() throws {
        let person: ContentMapping = [
            "name": .value("names[0].first").required,
            "city": .value("home.town").or("nowhere"),
            "born": .date("birthday", format: "dd.MM.yyyy").omittedIfMissing,
            "tags": .each("tags", .value("t")),
            "id": .number("id"),
        ]
        let mapping = ContentMapping.each("result.people", person)
        let text = #"""
            {"result": {"people": [
                {"names": [{"first": "Ada"}], "birthday": "10.12.1815", "tags": [{"t": 1}], "id": "7"},
                {"names": [{"first": "Bob"}], "home": {"town": "Rome"}}
            ]}}
            """#
        let mapped = try read(ResponseFormat<JSONValue>.jsonValue.mapped(by: mapping), text)
        #expect(
            mapped.description
                == #"[{"name":"Ada","city":"nowhere","born":"1815-12-10T00:00:00Z","tags":[1],"id":7},"#
                + #"{"name":"Bob","city":"Rome","tags":null,"id":null}]"#
        )
        let users = ResponseFormat<[User]>.json.mapped(
            by: .each("result.people", ["name": "names[0].first", "city": "home.town"])
        )
        #expect(try read(users, text) == [User(name: "Ada"), User(name: "Bob", city: "Rome")])
        let error = #expect(throws: MappingError.self) {
            try read(users.mapped(by: .number("result")), text)
        }
        guard case .unmapped = error else { return #expect(Bool(false), "\(error as Any)") }
        let missing = #expect(throws: MappingError.self) {
            try mapping.map(Data(#"{"result": {"people": [{}]}}"#.utf8))
        }
        #expect(missing?.description.contains("name") == true, "\(missing as Any)")
    }

    @Test(arguments: [
        ("a..b", "has an empty name"), ("", "is empty"), ("a[x]", "has brackets without a number"),
    ]) func aMappingThatIsNoneIsRefusedBeforeAnythingIsSent(path: String, reason: String) async throws {
        for mapping: ContentMapping in [.value(path), .each(path, "x"), .each("x", .value(path)), ["a": .value(path)]] {
            let (loader, transport) = makeLoader()
            let error = await serviceError { () throws(ServiceError) in
                try await loader.load(ResponseFormat<User>.json.mapped(by: mapping), from: "/a")
            }
            guard case .invalidRequest(let text) = error else { return #expect(Bool(false), "\(error as Any)") }
            #expect(text.contains(reason) && transport.requests.isEmpty, "\(text)")
        }
        #expect(throws: MappingError.self) {
            try ContentMapping.date("a", format: "xyz").map(Data("{}".utf8))
        }
        #expect(throws: MappingError.self) { try ContentMapping.data("a", format: "unix").map(Data("{}".utf8)) }
        #expect(throws: MappingError.self) { try ([:] as ContentMapping).map(Data("{}".utf8)) }
    }
}
