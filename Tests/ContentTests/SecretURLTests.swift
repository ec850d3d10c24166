// URLs as recordings, imports and logs have them: without the secrets in them.

import Content
import Testing

@Suite struct SecretURLTests {
    @Test(
        arguments: [
            ("/a?page=2&b", "/a?page=2&b"), ("/a?token=x&page=2", "/a?token=***&page=2"), ("/a?token=", "/a?token="),
            ("/a?access%5Ftoken=x;b=1", "/a?access%5Ftoken=***;b=1"),
            ("/a#access_token=x&b=1", "/a#access_token=***&b=1"),
            ("/a?b=1?token=x#jwt=y", "/a?b=1?token=***#jwt=***"),
            ("https://me:hush@host/a@b?c=1", "https://me:***@host/a@b?c=1"),
            ("https://ghp_1@host/", "https://***@host/"),
            ("//h/@x?a=b@c", "//h/@x?a=b@c"), ("token=x", "token=x"), ("", ""), ("?", "?"),
            ("/login?next=%2Fa%3Ftoken%3Dx&b=1", "/login?next=***&b=1"),
            ("/login?next=%2Fa%3Fpage%3D1", "/login?next=%2Fa%3Fpage%3D1"),
            ("/?a=%3Fb%3D%253Fc%253D%25253Ftoken%25253Dx", "/?a=***"),
        ]
    )
    func hidden(_ url: String, shown: String) {
        #expect(SecretURL.hidden(url) == shown)
        #expect(SecretURL.hidden(url, field: "Location") == shown)
        #expect(SecretURL.hidden(shown) == shown)
    }

    @Test func linksAreLookedIntoOneByOne() {
        let value = "</a?token=x>; rel=\"next\", <https://h/b?c=1#sig=y>; rel=prev; title=\"a?token=z\""
        #expect(
            SecretURL.hidden(value, field: "LINK")
                == "</a?token=***>; rel=\"next\", <https://h/b?c=1#sig=***>; rel=prev; title=\"a?token=z\""
        )
        #expect(SecretURL.hidden("<a?token=x", field: "Link") == "<a?token=x")
    }
}
