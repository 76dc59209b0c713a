"""Table of names that reveal a coin or a time: tickers and their other names, and related people, firms and products.

Data only; `agent.blind.neutral_text` searches for them. It covers the English names of common perps and is not
complete: a symbol traded in a run is searched for by its own name whether it is listed here or not.
"""

import re

_listed = re.compile(r"\S+").findall

COINS: dict[str, tuple[str, ...]] = {
    "BTC": ("bitcoin", "bitcion", "xbt", "wbtc", "tbtc", "cbbtc", "rbtc", "renbtc", "lbtc", "btcb", "btcfi", "hyperbitcoinization"),
    "ETH": (
        "ethereum", "etherium", "etherum", "ether", "ethers", "eth2", "weth", "steth", "wsteth", "reth", "cbeth", "geth", "seth2",
        "etherscan", "ethbtc",
    ),
    "SOL": ("solana", "wsol", "msol", "jitosol", "stsol", "bsol"),
    "XRP": ("ripple", "xrpl", "rlusd"),
    "DOGE": ("dogecoin",), "BNB": ("binance coin", "bnb chain", "bsc", "bep20", "bep-20"),
    "AVAX": ("avalanche",), "HYPE": ("hyperliquid", "hyperevm", "hypercore"), "LINK": ("chainlink",),
    "SUI": ("sui network",), "LTC": ("litecoin",), "ARB": ("arbitrum",), "ADA": ("cardano",), "DOT": ("polkadot",),
    "BCH": ("bitcoin cash", "bitcoincash"), "TRX": ("tron", "tronix"), "XMR": ("monero",), "SHIB": ("shiba inu", "shiba", "shibarium"),
    "UNI": ("uniswap",), "ATOM": ("cosmos",), "XLM": ("stellar", "stellar lumens"), "ETC": ("ethereum classic",),
    "FIL": ("filecoin",), "MATIC": ("polygon",), "POL": ("polygon",), "NEAR": ("near protocol",), "APT": ("aptos",),
    "OP": ("optimism",), "INJ": ("injective",), "TON": ("toncoin", "the open network"), "PEPE": ("pepecoin",),
    "WIF": ("dogwifhat",), "BONK": (), "FLOKI": (), "FET": ("fetch.ai",), "RNDR": ("render network",), "RENDER": (),
    "TIA": ("celestia",), "SEI": ("sei network",), "STX": ("stacks",), "ORDI": (), "IMX": ("immutable x", "immutablex"),
    "AAVE": (), "MKR": ("makerdao",), "SKY": (), "LDO": ("lido finance", "lido dao"), "CRV": ("curve finance",),
    "SNX": ("synthetix",), "COMP": (), "YFI": ("yearn finance",), "SUSHI": ("sushiswap",), "1INCH": (), "DYDX": (),
    "GMX": (), "JUP": (), "JTO": ("jito",), "PYTH": ("pyth network",), "ENA": ("ethena",), "PENDLE": (), "EIGEN": ("eigenlayer",),
    "STRK": ("starknet",), "ZK": ("zksync",), "ZRO": ("layerzero",), "W": (), "ALGO": ("algorand",), "VET": ("vechain",),
    "EOS": (), "XTZ": ("tezos",), "ICP": ("internet computer", "dfinity"), "HBAR": ("hedera", "hashgraph"), "QNT": (),
    "GRT": ("the graph protocol",), "FTM": ("fantom",), "EGLD": ("multiversx", "elrond"), "FLOW": (), "AXS": ("axie infinity", "axie"),
    "SAND": ("the sandbox",), "MANA": ("decentraland",), "APE": ("apecoin",), "GALA": (), "CHZ": ("chiliz",),
    "THETA": (), "ZEC": ("zcash",), "DASH": (), "NEO": (), "WAVES": (), "KSM": ("kusama",), "RUNE": ("thorchain",),
    "LUNA": ("terra luna", "terrausd"), "LUNC": (), "UST": (), "CRO": ("cronos",), "KAS": ("kaspa",), "TAO": ("bittensor",),
    "WLD": ("worldcoin",), "ONDO": (), "TRUMP": (), "MELANIA": (), "FARTCOIN": (), "PENGU": (), "POPCAT": (),
    "PNUT": (), "MOODENG": (), "TURBO": (), "BRETT": (), "MEW": (), "NOT": ("notcoin",), "PEOPLE": (), "BLUR": (),
    "CAKE": ("pancakeswap",), "BAT": (), "ENS": (), "GAS": (), "MINA": (), "CFX": (), "AR": ("arweave",),
    "XAI": (), "MANTA": (), "ALT": (), "DYM": (), "ETHFI": ("ether.fi",), "BOME": (), "TNSR": (), "SAGA": (),
    "MOVE": (), "BERA": ("berachain",), "KAITO": (), "S": (), "IP": (), "VIRTUAL": (), "AIXBT": (), "GRASS": (),
    "BSV": ("bitcoin sv",), "HT": ("huobi token",), "OKB": (), "LEO": (), "DAI": (), "FTT": (), "CEL": (), "LRC": ("loopring",),
}  # fmt: skip
"""Every coin by its ticker, with its other names. `1000PEPE` and `kPEPE` are listed as PEPE."""

WORDS = frozenset(
    _listed(
        "LINK NEAR HYPE DOT OP ATOM GAS ONE MOVE NOT ME S W A I AI IO IP AR FLOW SAND MASK RENDER CAKE COMP PEOPLE TRUMP "
        "MELANIA BLUR ICE ACE APE GALA SUPER TURBO MAGIC HIGH ROSE SUN WAVES KEY CAT DOGS MEME TON APT ALGO VET RUNE DASH "
        "ETC SUSHI BAT ALT SAGA GRASS GOAT VINE LAYER INIT SKY COMPOUND MANA MEW POL LEO CEL THETA LUNA VIRTUAL MANTA ENS "
        "JUP AXS MINA SEI ZK HT UST DAI"
    )
)
"""Tickers that are also words, parts of words or names: matched in capitals only, unless the run trades them."""

COMMON = frozenset(
    _listed("etc near not me one move w s a i in is it to on of or at by key high gas super people op ai io ip ar ht")
)
"""Very common words: in lower case they never match a coin, not even a traded one."""

VAGUE = frozenset(
    _listed(
        "avalanche cosmos stellar optimism polygon fantom injective hedera stacks ether ethers cronos ripple tron shiba bsc lido "
        "xbt geth reth aptos axie jito eth2 seth2 lbtc rbtc tbtc"
    )
)
"""Names that are also words, or short enough to be parts of words: matched as whole words only."""

PLAIN = frozenset(_listed("fidelity celsius circle gemini ordinal ordinals block ledger revolut"))
"""Names of firms and products that also occur inside other words."""

PEOPLE = (
    "Satoshi Nakamoto", "Satoshi", "Nakamoto", "Vitalik Buterin", "Vitalik", "Buterin", "Charles Hoskinson", "Hoskinson", "Justin Sun",
    "Brad Garlinghouse", "Garlinghouse", "Changpeng Zhao", "CZ", "Michael Saylor", "Saylor", "Sam Bankman-Fried",
    "Bankman-Fried", "SBF", "Do Kwon", "Elon Musk", "Musk", "Anatoly Yakovenko", "Yakovenko", "Gavin Wood",
    "Sergey Nazarov", "Charlie Lee", "Nayib Bukele", "Bukele", "Hal Finney", "Craig Wright", "Adam Back", "Cathie Wood",
    "Gary Gensler", "Gensler", "Jerome Powell", "Powell", "Donald Trump", "Trump", "Joe Biden", "Biden", "Kamala Harris",
    "Janet Yellen", "Yellen", "Paul Atkins", "Hester Peirce", "Caroline Ellison", "Su Zhu", "Kyle Davies", "Roger Ver",
    "Gavin Andresen", "Joseph Lubin", "Andre Cronje", "Emin Gün Sirer", "Silvio Micali", "Plan B", "PlanB", "Jack Dorsey", "Dorsey",
    "Winklevoss", "Barry Silbert", "Mike Novogratz", "Novogratz", "Arthur Hayes", "Jed McCaleb", "Jesse Powell", "Brian Armstrong",
)  # fmt: skip

VENUES = (
    "Hyperliquid", "Binance", "Coinbase", "Kraken", "Bitfinex", "Bitstamp", "Huobi", "HTX", "OKX", "OKEx", "Bybit", "KuCoin",
    "Deribit", "BitMEX", "FTX", "Gemini", "Crypto.com", "Upbit", "Bithumb", "Gate.io", "Bitget", "Mt. Gox", "Mt.Gox", "Mt Gox",
    "MtGox", "Poloniex", "Bittrex", "Bakkt", "LocalBitcoins", "Bitvavo", "WazirX", "CoinDCX", "BitFlyer", "Coincheck", "Bitpanda",
)  # fmt: skip

FIRMS = (
    "MicroStrategy", "MSTR", "Grayscale", "Alameda Research", "Alameda", "Celsius Network", "Celsius", "BlockFi", "Voyager Digital",
    "Three Arrows Capital", "3AC", "Genesis Trading", "Genesis Global", "Digital Currency Group", "DCG", "Silvergate", "Signature Bank",
    "Silicon Valley Bank", "SVB", "Credit Suisse", "Tesla", "SpaceX", "BlackRock", "Fidelity", "VanEck", "Bitwise", "WisdomTree",
    "ARK Invest", "21Shares", "ProShares", "Valkyrie", "Galaxy Digital", "Marathon Digital", "Riot Blockchain", "Riot Platforms",
    "Core Scientific", "Bitmain", "Blockstream", "ConsenSys", "Terraform Labs", "Ripple Labs", "Tether", "Circle",
    "Metaplanet", "Semler Scientific", "Block Inc", "BitGo", "Blockchair", "Glassnode", "HODL15 Capital", "Swissblock", "Babel Finance",
    "Hodlnaut", "Vauld", "Wirecard", "Evergrande", "Robinhood", "PayPal", "Revolut", "Trezor", "Ledger",
)  # fmt: skip

PRODUCTS = (
    "GBTC", "ETHE", "IBIT", "FBTC", "ARKB", "BITB", "HODL", "BITO", "ETHA", "Ordinals", "Ordinal", "BRC-20", "BRC20", "Runes protocol",
    "Taproot", "SegWit", "Lightning Network", "halving", "halvening", "halvings", "Shapella", "Shanghai upgrade", "Shanghai hard fork",
    "Dencun", "Pectra", "Fusaka", "the Merge", "EIP-1559", "EIP-4844", "EIP-3074", "ERC-20", "ERC20", "ERC-721", "Beacon Chain",
    "Firedancer", "Alpenglow", "XRP Ledger", "Alonzo", "Vasil", "satoshis", "satoshi", "sats", "gwei", "hash rate", "hashrate", "EH/s",
    "TH/s", "Uptober", "Septembear", "Moonvember", "Rektember", "MVRV", "STH-MVRV", "stock-to-flow", "Bitmain Antminer", "Antminer",
    "El Salvador", "COVID-19", "COVID", "coronavirus", "CryptoPunks", "Bored Ape", "NFTs", "Saga phone", "Libra", "Diem",
)  # fmt: skip
