// The words that made-up data is put together from. Their order is part of what a seed means: new ones go to the end
// of a new list, never into one of these.

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
