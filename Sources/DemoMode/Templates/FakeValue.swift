// Made-up data for templates: names, addresses, texts and numbers, drawn from a stream of their own.

import Trees

/// A kind of made-up value.
enum FakeValue: Sendable, Equatable {
    case name
    case firstName
    case lastName
    case email
    case street
    case city
    case country
    case company
    case uuid
    case id
    case integer(ClosedRange<Int>)
    case boolean
    case word
    case sentence
    case paragraph
    /// A day in days since 1970, both ends included.
    case date(ClosedRange<Int64>)
    case oneOf([String])

    /// The kind of value for each name of a template and its arguments; nil if the arguments are wrong.
    static let named: [String: @Sendable ([String]) -> FakeValue?] = [
        "name": { $0.isEmpty ? .name : nil },
        "first_name": { $0.isEmpty ? .firstName : nil },
        "last_name": { $0.isEmpty ? .lastName : nil },
        "email": { $0.isEmpty ? .email : nil },
        "street": { $0.isEmpty ? .street : nil },
        "city": { $0.isEmpty ? .city : nil },
        "country": { $0.isEmpty ? .country : nil },
        "company": { $0.isEmpty ? .company : nil },
        "uuid": { $0.isEmpty ? .uuid : nil },
        "id": { $0.isEmpty ? .id : nil },
        "boolean": { $0.isEmpty ? .boolean : nil },
        "word": { $0.isEmpty ? .word : nil },
        "sentence": { $0.isEmpty ? .sentence : nil },
        "paragraph": { $0.isEmpty ? .paragraph : nil },
        "one_of": { $0.isEmpty ? nil : .oneOf($0) },
        "integer": { arguments in
            if arguments.isEmpty { return .integer(0...1000) }
            guard arguments.count == 2, let low = Int(arguments[0]), let high = Int(arguments[1]), low <= high
            else { return nil }
            return .integer(low...high)
        },
        "date": { arguments in
            if arguments.isEmpty { return .date(10957...21914) }
            guard arguments.count == 2, let low = CalendarTime(iso8601: arguments[0]),
                let high = CalendarTime(iso8601: arguments[1]), low.seconds <= high.seconds
            else { return nil }
            return .date(low.seconds / 86400...high.seconds / 86400)
        },
    ]

    /// A description of the arguments of a name.
    static func takes(_ name: String) -> String {
        switch name {
        case "integer": "two numbers, the smaller one first"
        case "date": "two dates such as 2026-01-31, the earlier one first"
        case "one_of": "the texts to choose from"
        default: "no arguments"
        }
    }
}

/// Draws made-up values in sequence: the same start gives the same values.
struct FakeSource: Sendable {
    private var state: UInt64

    /// - Parameter start: the start of the answer's draw.
    init(_ start: UInt64) { state = start }

    private mutating func bits() -> UInt64 {
        state &+= goldenGamma
        return mix(state)
    }

    private mutating func number(below count: UInt64) -> UInt64 { bits().multipliedFullWidth(by: count).high }

    private mutating func one(_ words: [String]) -> String { words[Int(number(below: UInt64(words.count)))] }

    mutating func draw(_ value: FakeValue) -> ContentTree {
        switch value {
        case .boolean: return .bool(bits() & 1 == 1)
        case .integer(let range):
            let span = UInt64(bitPattern: Int64(range.upperBound) &- Int64(range.lowerBound))
            let offset = span == .max ? bits() : number(below: span + 1)
            return .number(String(Int64(range.lowerBound) &+ Int64(bitPattern: offset)))
        case .id: return .number(String(1 + number(below: 999_999)))
        case .date(let days):
            let day = days.lowerBound + Int64(number(below: UInt64(days.upperBound - days.lowerBound) + 1))
            return .string(CalendarTime(day * 86400).formatted("%Y-%m-%d"))
        default: return .string(text(value))
        }
    }

    private mutating func text(_ value: FakeValue) -> String {
        switch value {
        case .name: return "\(one(FakeWords.firstNames)) \(one(FakeWords.lastNames))"
        case .firstName: return one(FakeWords.firstNames)
        case .lastName: return one(FakeWords.lastNames)
        case .email:
            let (first, last) = (one(FakeWords.firstNames), one(FakeWords.lastNames))
            // These domains are reserved for examples (RFC 2606 section 3).
            return "\(first).\(last)".lowercased() + "@" + one(["example.com", "example.net", "example.org"])
        case .street: return "\(1 + number(below: 199)) \(one(FakeWords.streets)) \(one(FakeWords.streetKinds))"
        case .city: return one(FakeWords.cities)
        case .country: return one(FakeWords.countries)
        case .company: return "\(one(FakeWords.lastNames)) \(one(FakeWords.companyKinds))"
        case .uuid: return uuid()
        case .word: return one(FakeWords.words)
        case .sentence: return sentence()
        case .paragraph:
            let count = 3 + number(below: 4)
            return (0..<count).map { _ in sentence() }.joined(separator: " ")
        case .oneOf(let texts): return one(texts)
        case .boolean, .integer, .id, .date: return ""
        }
    }

    private mutating func sentence() -> String {
        let count = 5 + number(below: 8)
        let words = (0..<count).map { _ in one(FakeWords.words) }
        let first = words[0].prefix(1).uppercased() + words[0].dropFirst()
        return ([first] + words.dropFirst()).joined(separator: " ") + "."
    }

    /// Draws a UUID of version 4 (RFC 9562 section 5.4).
    private mutating func uuid() -> String {
        let high = bits() & 0xffff_ffff_ffff_0fff | 0x4000
        let low = bits() & 0x3fff_ffff_ffff_ffff | 0x8000_0000_0000_0000
        func digits(_ number: UInt64) -> String {
            let text = String(number, radix: 16)
            return String(repeating: "0", count: 16 - text.count) + text
        }
        let (first, second) = (digits(high), digits(low))
        let parts = [
            first.prefix(8), first.dropFirst(8).prefix(4), first.suffix(4), second.prefix(4), second.dropFirst(4),
        ]
        return parts.joined(separator: "-")
    }
}

// MARK: - Words

/// The words from which made-up data is composed. Their order decides the draws of a seed, so new words go into a new
/// list, never into one of these.
enum FakeWords {
    static let firstNames = words(
        """
        Ada Amara Anna Ben Bilal Carla Chen Chiara Daniel Diego Elena Emil Emma Farid Fatima Felix Grace Hana Hugo Ida \
        Ines Ivan Jonas Julia Kenji Lara Leo Lina Lucas Maja Marco Maya Mina Nadia Nils Noah Nora Olga Oscar Paula Priya \
        Rafael Rosa Samir Sara Sofia Theo Tomas Vera Yusuf
        """
    )
    static let lastNames = words(
        """
        Abadi Adeyemi Andersen Baker Bianchi Castro Chen Conti Costa Dubois Eriksen Fischer Fontana Garcia Haddad Hansen \
        Ito Jansen Kaya Keller Khan Kim Kowalski Larsen Laurent Lopez Marino Martin Meyer Moreau Mori Nagy Ndiaye Novak \
        Okafor Olsen Park Patel Petrov Popov Ricci Rossi Santos Sato Silva Singh Tanaka Virtanen Weber Young
        """
    )
    static let streets = words(
        """
        Acorn Birch Bridge Canal Castle Cedar Church Elm Garden Harbour Hazel High Lake Linden Maple Market Meadow Mill \
        Oak Orchard Park River Rose School Station Willow
        """
    )
    static let streetKinds = words("Street Road Avenue Lane Way Square")
    static let cities = words(
        """
        Accra Amsterdam Athens Barcelona Bergen Berlin Bogota Bologna Boston Brno Cairo Dakar Dublin Geneva Ghent Hanoi \
        Helsinki Kyoto Lagos Leeds Lima Lisbon Lyon Madrid Malmo Milan Montreal Nairobi Naples Osaka Oslo Porto Prague \
        Pune Quito Riga Rome Seoul Sydney Turin Vienna Warsaw Zurich
        """
    )
    static let countries = words(
        """
        Argentina Australia Austria Belgium Brazil Canada Chile Colombia Croatia Denmark Egypt Estonia Finland France \
        Germany Ghana Greece India Indonesia Ireland Italy Japan Kenya Latvia Mexico Morocco Nepal Netherlands Nigeria \
        Norway Peru Poland Portugal Senegal Spain Sweden Switzerland Tunisia Uruguay Vietnam
        """
    )
    static let companyKinds = words("Ltd Group Works Systems Partners Labs Foods Media Logistics Energy Studio Trading")
    static let words = words(
        """
        about above afternoon answer apple around autumn basket before begin behind bench better bird blue boat book \
        bread bridge bright bring build butter candle carry chair change child circle clean clear cloud coffee cold \
        colour corner cousin dance day deep dinner door dream early earth easy evening every family far farmer field \
        find fire flower follow forest friend garden gather gentle glass gold good grass green ground happy harbour hat \
        hill home honey hour house island journey kitchen lake lamp large late laugh leaf learn letter light listen \
        little long market meadow milk mirror moon morning mountain music narrow near night north ocean old open orange \
        paper path pencil people picture plain plant quiet rain reach river road round sail salt sand school season \
        shadow shore silver simple sing sister small snow soft song south spring star stone story street summer sun table \
        take tall tea thread today tower train tree under valley village visit voice walk warm water west wide wind \
        window winter wood word world write yellow young
        """
    )

    private static func words(_ text: String) -> [String] { text.split(separator: " ").map(String.init) }
}
