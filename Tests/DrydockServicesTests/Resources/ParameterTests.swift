// A program's values as parameters and contents: names, ignored properties, dates, nulls, transforms, and what wins.

import Drydock
import DrydockServices
import DrydockTesting
import Foundation
import Testing

private struct Address: Encodable {
    var street: String?
    var zipCode = "N1"
}

private struct Query: Encodable {
    var schoolName = "Hill"
    var userID = 7
    var URLString = "u"
    var HTTPServer2 = true
    var Title = "t"
    var homeAddress = Address(street: nil)
    var tags = ["b", "a"]
    var note: String? = nil
    var half = 0.5
}

@Suite struct ParameterTests {
    private func json(_ value: some Encodable, _ style: ParameterStyle = ParameterStyle()) async throws -> String {
        let body = try RequestBody.json(value, style: style)
        return String(decoding: try await body.collect(upTo: 10_000), as: UTF8.self)
    }

    @Test func propertiesKeepTheirOrderAndNames() async throws {
        #expect(
            try await json(Query())
                == #"{"schoolName":"Hill","userID":7,"URLString":"u","HTTPServer2":true,"Title":"t","#
                + #""homeAddress":{"zipCode":"N1"},"tags":["b","a"],"half":0.5}"#
        )
    }

    @Test func namesBecomeSnakeCase() async throws {
        #expect(
            try await json(Query(), ParameterStyle().snakeCase)
                == #"{"school_name":"Hill","user_id":7,"url_string":"u","http_server2":true,"title":"t","#
                + #""home_address":{"zip_code":"N1"},"tags":["b","a"],"half":0.5}"#
        )
    }

    @Test func namesBecomeCamelCase() async throws {
        let value: JSONValue = ["user_id": 1, "_own_name": [["first_name": 2]]]
        #expect(
            try await json(value, ParameterStyle().camelCase) == #"{"userId":1,"_ownName":[{"firstName":2}]}"#
        )
    }

    @Test func namesThatWouldBecomeOneAreRefused() async throws {
        let value: JSONValue = ["userId": 1, "user_id": 2]
        let error = #expect(throws: ServiceError.self) {
            try RequestBody.json(value, style: ParameterStyle().snakeCase)
        }
        #expect(error?.description.contains("'userId' and 'user_id' would both be 'user_id'") == true)
    }

    @Test func ignoredPropertiesAreLeftOut() async throws {
        let style = ParameterStyle(
            ignoring: ["homeAddress.zipCode", "tags", "HTTPServer2", "URLString", "Title", "half"]
        ).snakeCase
        #expect(try await json(Query(), style) == #"{"school_name":"Hill","user_id":7,"home_address":{}}"#)
        #expect(try await json(Query(), ParameterStyle(ignoring: ["*"])) == "{}")
    }

    @Test func valuesAreTransformed() async throws {
        let style = ParameterStyle { path, value in
            if let list = value.array { return JSONValue(list.compactMap(\.string).joined(separator: ",")) }
            switch path {
            case "homeAddress.zipCode": return JSONValue("zip " + (value.string ?? ""))
            case "homeAddress", "schoolName": return value
            default: return nil
            }
        }.snakeCase
        #expect(
            try await json(Query(), style)
                == #"{"school_name":"Hill","home_address":{"zip_code":"zip N1"},"tags":"b,a"}"#
        )
    }

    @Test func explicitParametersWinAndAreNotRenamed() throws {
        var parameters = try Parameters(encoding: Query(), style: ParameterStyle(ignoring: ["tags"]).snakeCase)
        parameters["user_id"] = 9
        parameters["keptAsItIs"] = true
        parameters["title"] = nil
        #expect(parameters["user_id"] == 9)
        #expect(
            parameters.names == [
                "school_name", "user_id", "url_string", "http_server2", "home_address", "half", "keptAsItIs",
            ]
        )
        let merged = parameters.merging(["half": 1, "new": 2])
        #expect(merged["half"] == 1 && merged.names.suffix(3) == ["half", "keptAsItIs", "new"])
    }

    @Test func nullsGoAtEveryDepth() async throws {
        let value: JSONValue = [
            "a": nil, "b": ["c": nil, "d": ["e": nil]], "f": [nil, ["g": nil]], "h": [], "i": [:], "j": 0,
        ]
        #expect(
            try await json(value)
                == #"{"a":null,"b":{"c":null,"d":{"e":null}},"f":[null,{"g":null}],"h":[],"i":{},"j":0}"#
        )
        let bare = #"{"f":[null,{"g":null}],"h":[],"i":{},"j":0}"#
        #expect(try await json(value, ParameterStyle(removesNulls: true)) == bare)
        #expect(value.removingNulls().description == bare)
        #expect(Parameters(value.members ?? []).removingNulls().names == ["f", "h", "i", "j"])
    }

    @Test func datesAndDataHaveForms() async throws {
        struct Times: Encodable {
            var at = Date(timeIntervalSince1970: 1_700_000_000.25)
            var bytes = Data([0, 255])
            var url = URL(string: "https://a.test/b?c")
            var price = Decimal(string: "1.10")
        }
        let rest = #","bytes":"AP8=","url":"https://a.test/b?c","price":1.1}"#
        #expect(try await json(Times()) == #"{"at":"2023-11-14T22:13:20Z""# + rest)
        #expect(try await json(Times(), ParameterStyle().datesInSeconds) == #"{"at":1700000000.25"# + rest)
        #expect(try await json(Times(), ParameterStyle().datesInMilliseconds) == #"{"at":1700000000250"# + rest)
        struct Bare: Codable, Equatable {
            var at = Date(timeIntervalSince1970: 1_700_000_000)
            var bytes = Data([0, 255])
        }
        let (loader, transport) = makeLoader(.json(try await json(Bare())))
        #expect(try await loader.load(Bare.self, from: .put("/a", body: .propertyList(Bare()))).model == Bare())
        let sent = try #require(transport.requests.first?.body)
        #expect(try PropertyListDecoder().decode(Bare.self, from: sent) == Bare())
    }

    @Test func anEncoderOfFoundationMayWriteTheContent() async throws {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys]
        encoder.keyEncodingStrategy = .convertToSnakeCase
        let body = try RequestBody.json(Address(street: "Hill"), encoder: encoder)
        #expect(
            String(decoding: try await body.collect(upTo: 100), as: UTF8.self) == #"{"street":"Hill","zip_code":"N1"}"#
        )
        #expect(body.contentType == "application/json")
    }

    @Test func whatCannotBeWrittenIsAnEncodingError() {
        #expect(throws: ServiceError.self) { try RequestBody.json(["a": Double.nan]) }
        #expect(throws: ServiceError.self) { try RequestBody.propertyList(["a": nil] as JSONValue) }
        #expect(throws: ServiceError.self) { try RequestBody.propertyList(["a": "\u{1}"]) }
        #expect(throws: ServiceError.self) { try Parameters(encoding: [1, 2]) }
        #expect(throws: ServiceError.self) { try RequestBody.json(Parameters([("a", 1), ("a", 2)])) }
        #expect(throws: ServiceError.self) { try RequestBody.json(["a": Date.distantFuture + 1e15]) }
        let error = #expect(throws: ServiceError.self) { try RequestBody.propertyList(["b": ["a": nil]] as JSONValue) }
        #expect(error?.name == "encoding" && error?.description.contains("'a' is null") == true)
    }

    @Test func everyShapeOfAnEncodableIsPacked() async throws {
        class Base: Encodable {
            var a = 1
        }
        final class Derived: Base {
            var b: UInt8 = 2
            override func encode(to encoder: any Encoder) throws {
                var container = encoder.container(keyedBy: Key.self)
                try container.encode(b, forKey: .b)
                try container.encodeNil(forKey: .none)
                try super.encode(to: container.superEncoder())
                var list = container.nestedUnkeyedContainer(forKey: .list)
                try list.encode(Float(1.5))
                try list.encodeNil()
                var inner = list.nestedContainer(keyedBy: Key.self)
                try inner.encode(Int64.min, forKey: .b)
            }
            enum Key: String, CodingKey {
                case b, none, list
            }
        }
        #expect(
            try await json(Derived())
                == #"{"b":2,"none":null,"super":{"a":1},"list":[1.5,null,{"b":-9223372036854775808}]}"#
        )
        #expect(try await json("text") == #""text""#)
        #expect(try await json([Int?.none, 3]) == "[null,3]")
        #expect(try await json([String: Int]()) == "{}")
    }
}
