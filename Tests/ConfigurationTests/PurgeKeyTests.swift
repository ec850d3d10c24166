// Purges on a schedule: what is taken over, and what is refused.

import Testing

@testable import Configuration

@Suite struct PurgeKeyTests {
    private let service = "services: [{ name: s, match: { prefix: /s }, base_url: 'http://a.example' }]\n"

    @Test func everythingIsTakenOver() throws {
        let folder = try Folder()
        let loaded = try folder.load(
            service + "purge:\n  - { older_than: 30d, every: 1d }\n"
                + "  - { tag: news, prefix: 'http://a/', glob: '*b*', service: s, soft: true, every: 10m, at_start: true }\n"
        )
        var old = PurgeConfiguration(schedule: ScheduleConfiguration(every: 86_400_000_000_000))
        old.olderThan = 30 * 86_400
        var often = ScheduleConfiguration(every: 600_000_000_000)
        often.atStart = true
        var soft = PurgeConfiguration(schedule: often)
        (soft.tag, soft.prefix, soft.glob, soft.service) = ("news", "http://a/", "*b*", "s")
        soft.isSoft = true
        #expect(loaded.purge == [old, soft])
    }

    @Test(
        arguments: [
            ("{ every: 1d }", "purges nothing"), ("{ tag: a }", "every"),
            ("{ tag: a, every: 10ms }", "write 1s or more"),
            ("{ tag: '', every: 1d }", "is empty"), ("{ older_than: 7, every: 1d }", "older_than"),
            ("{ tag: a, every: 1d, sotf: true }", "soft"),
            ("{ tag: a, every: 1d, service: t }", "names a service that does not exist"),
        ]
    )
    func refusals(entry: String, words: String) throws {
        let found = errors("purge:\n  - \(entry)\n")
        #expect(found.count == 1 && found[0].contains(words), "\(found)")
    }
}
