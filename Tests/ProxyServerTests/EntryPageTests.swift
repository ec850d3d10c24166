// Paging over both tiers: every entry on exactly one page, whatever the limit.

import Drydock
import TestSupport
import Testing

@testable import ProxyServer

@Suite struct EntryPageTests {
    private static func entry(_ url: String, _ tier: String, service: String = "s", size: Int = 1, variant: String = "")
        -> AdminEntries.Entry
    {
        AdminEntries.Entry(
            url: url,
            service: service,
            status: 200,
            size: size,
            tiers: [tier],
            age: 0,
            ttl: nil,
            variant: variant.isEmpty ? [:] : ["Accept": variant]
        )
    }

    /// All pages, with limits checked.
    private static func pages(_ memory: [AdminEntries.Entry], _ disk: [AdminEntries.Entry], limit: Int) async
        -> [AdminEntries.Entry]
    {
        var result: [AdminEntries.Entry] = []
        var after: String?
        for _ in 0...(memory.count + disk.count) {
            let from = after
            let behind = { (entry: AdminEntries.Entry) in from.map { entry.url > $0 } ?? true }
            let page = await EntryPage.make(memory: memory.filter(behind), limit: limit) { limit in
                Array(disk.filter(behind).sorted { $0.url < $1.url }.prefix(limit))
            }
            result += page.entries
            guard let next = page.next else { return result }
            #expect(!page.entries.isEmpty && next == page.entries.last?.url)
            after = next
        }
        Issue.record("the pages do not end")
        return result
    }

    @Test(arguments: [1, 2, 3, 5, 7, 100])
    func `no page boundary loses or repeats an entry`(limit: Int) async {
        var memory: [AdminEntries.Entry] = []
        var disk: [AdminEntries.Entry] = []
        for number in 0..<10 { memory.append(Self.entry("http://a/m\(number)", "memory")) }
        for number in 0..<10 { disk.append(Self.entry("http://a/d\(number)", "disk")) }
        for number in 0..<4 {
            // The same URL of several services, in several variants, in both tiers.
            memory.append(Self.entry("http://a/v", "memory", size: number, variant: "v\(number)"))
            disk.append(Self.entry("http://a/v", "disk", size: number))
            disk.append(Self.entry("http://a/w", "disk", size: number))
            disk.append(Self.entry("http://a/x", "disk", service: "s\(number)"))
            memory.append(Self.entry("http://a/x", "memory", service: "s\(number)"))
        }
        let found = await Self.pages(memory, disk, limit: limit)
        #expect(found.map(\.url) == found.map(\.url).sorted())
        #expect(found.count == 32)
        #expect(found.count { $0.tiers == ["memory", "disk"] } == 8)
        #expect(found.count { $0.tiers == ["memory"] } == 10)
        #expect(found.count { $0.tiers == ["disk"] } == 14)
        let all = found.map { "\($0.url) \($0.service) \($0.size ?? 0) \($0.variant)" }
        #expect(Set(all).count == all.count)
    }

    @Test func `nothing stored is one empty page`() async {
        let page = await EntryPage.make(memory: [], limit: 10) { _ in [] }
        #expect(page == AdminEntries(entries: [], next: nil))
    }

    @Test(
        arguments: [
            ("", nil), ("http://a/", "http://a/*"), ("http://a/x?q=1", "http://a/x[?]q=1*"),
            ("http://[::1]/*", "http://[[]::1]/[*]*"),
        ] as [(String, String?)]
    )
    func `a prefix is no pattern`(prefix: String, expected: String?) {
        #expect(EntryPage.pattern(prefix) == expected)
    }
}
