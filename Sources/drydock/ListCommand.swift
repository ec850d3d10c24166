// `drydock list`: what is stored, page by page.

import ArgumentParser
import Configuration
import Foundation

struct List: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "What is stored: URL, size, tier, age, freshness.",
        discussion: "Ordered by URL. Freshness is in seconds; below zero it is staleness."
    )
    enum Tier: String, ExpressibleByArgument, CaseIterable { case memory, disk }

    @Argument(help: "A part of the URLs to list, or the form of the whole URL, where * stands for anything.")
    var pattern: String?
    @Option(help: "Only URLs that begin like this.")
    var prefix: String?
    @Option(help: "Only what is stored for this service; '' is forward mode.")
    var service: String?
    @Option(help: "Only what this tier holds: memory or disk.")
    var tier: Tier?
    @Flag(help: "Only what is fresh.")
    var fresh = false
    @Flag(help: "Only what is stale.")
    var stale = false
    @Flag(help: "Only what is pinned.")
    var pinned = false
    @Option(help: "Only bodies of so many bytes or more, such as 64KiB.")
    var minSize: String?
    @Option(help: "Only what arrived, or was last found current, longer ago than this, such as 12h or 7d.")
    var olderThan: String?
    @Option(help: "The most entries to print.")
    var limit = 1000
    @OptionGroup var options: AdminOptions

    private struct Document: Codable {
        struct Entry: Codable {
            let url: String
            let service: String
            let status: Int
            let size: Int?
            let tiers: [String]
            let age: Int
            let ttl: Int?
            let variant: [String: String]
            let isPinned: Bool
            let tags: [String]
        }
        var entries: [Entry]
        let next: String?
    }

    func validate() throws {
        if limit < 1 { throw ValidationError("--limit is \(limit); give a number from 1 on") }
        if fresh && stale { throw ValidationError("give either --fresh or --stale") }
        if pattern?.isEmpty == true { throw ValidationError("the pattern is empty; leave it out to list everything") }
        do throws(Lifetimes.Malformed) { if let olderThan { _ = try Lifetimes.seconds(olderThan) } } catch {
            throw ValidationError("--older-than: \(error)")
        }
        do throws(Lifetimes.Malformed) { if let minSize { _ = try Sizes.bytes(minSize) } } catch {
            throw ValidationError("--min-size: \(error)")
        }
    }

    private func query() throws -> String {
        let values = [
            ("pattern", pattern), ("prefix", prefix), ("service", service), ("tier", tier?.rawValue),
            ("older_than", olderThan), ("min_size", try minSize.map { "\(try Sizes.bytes($0))" }),
        ]
        let members = values.compactMap { name, value in value.map { "\(name)=\(AdminClient.escape($0))" } }
        let flags = [("fresh", fresh), ("stale", stale), ("pinned", pinned)].filter(\.1).map(\.0)
        return (members + flags).map { "&\($0)" }.joined()
    }

    func run() throws {
        var found: [Document.Entry] = []
        var after: String?
        let query = try query()
        repeat {
            var path = "/v1/entries?limit=\(min(limit - found.count, 1000))\(query)"
            if let after { path += "&after=\(AdminClient.escape(after))" }
            let page = try options.client.request("GET", path).successful().decode(Document.self)
            // A page never splits a URL, so that it may hold more than was asked for.
            let entries = page.entries.prefix(limit - found.count)
            if !options.json { for entry in entries { print(line(entry)) } }
            found += entries
            after = page.next
        } while after != nil && found.count < limit
        guard options.json else { return }
        let encoder = JSONEncoder()
        encoder.keyEncodingStrategy = .convertToSnakeCase
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        let document = Document(entries: found, next: after)
        print(String(decoding: try encoder.encode(document), as: UTF8.self))
    }

    private func line(_ entry: Document.Entry) -> String {
        let columns =
            [
                "\(entry.status)", entry.size.map(Format.size) ?? "?", entry.tiers.joined(separator: "+"),
                "age \(Format.duration(entry.age))", "ttl \(entry.ttl.map { "\($0)s" } ?? "?")",
                entry.service.isEmpty ? "forward" : entry.service, entry.url,
            ] + (entry.isPinned ? ["pinned"] : [])
        let variant = entry.variant.sorted { $0.key < $1.key }.map { "\($0.key): \($0.value)" }
        return columns.joined(separator: "  ") + (variant.isEmpty ? "" : "  [\(variant.joined(separator: ", "))]")
    }
}
