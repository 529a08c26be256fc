/* SPDX-License-Identifier: MIT
 * Declares the tokenizer's binary form ("image"): one flat little-endian block that is used where it lies.
 *
 *     header        struct whit_tokenizer_header: magic, version, special ids, section table
 *     sections      each 8-byte aligned, in the order of enum whit_tokenizer_section
 *
 * An image is canonical: the same tokenizer gives the same bytes, so its digest is part of the
 * model's identity. Opening checks the header and that sections lie inside the image; everything
 * inside them (offsets, ids, hash slots) is checked where it is used, and every probe and walk is
 * bounded. A damaged image gives wrong ids or an error, never a read outside. docs/dev/tokenizer.md
 * describes the layout; images are made by builder.h only. */
#ifndef WHIT_TOKENIZER_IMAGE_H
#define WHIT_TOKENIZER_IMAGE_H

#include "base/mem.h"

#define WHIT_TOKENIZER_MAGIC      "WHITTOKN"
#define WHIT_TOKENIZER_VERSION    1u
#define WHIT_TOKENIZER_MAX_PROBES 256u  /* hash slots looked at before "absent" */
#define WHIT_TOKENIZER_MAX_STEPS  32u   /* normalizers, pre-tokenizers or decoders in a row */
#define WHIT_TOKENIZER_MAX_WORD   4096u /* characters of a word of WordPiece: matching is quadratic in them */

enum whit_tokenizer_section {
    WHIT_TOKENS_OFFSETS,   /* u32[n_tokens + 1] into WHIT_TOKENS_TEXT */
    WHIT_TOKENS_TEXT,      /* token texts, concatenated */
    WHIT_TOKENS_FLAGS,     /* u8[n_tokens], WHIT_TOKEN_* */
    WHIT_TOKENS_SCORES,    /* f64[n_tokens], or empty */
    WHIT_TOKENS_HASH,      /* whit_token_slot[2^k]: text of a vocabulary entry to id */
    WHIT_TOKENS_TRIE,      /* whit_trie_node[]: the same for prefixes (Unigram, WordPiece) */
    WHIT_TOKENS_MERGES,    /* whit_merge_slot[2^k]: pair of ids to rank and id */
    WHIT_TOKENS_SYMBOLS,   /* i32[256]: id of a one-byte character, or of its byte-level symbol */
    WHIT_TOKENS_FALLBACK,  /* i32[256]: id of <0xNN> */
    WHIT_TOKENS_ADDED,     /* whit_added_token[], sorted by match text, raw ones first */
    WHIT_TOKENS_NORMALIZE, /* whit_tokenizer_step[] */
    WHIT_TOKENS_SPLIT,     /* whit_tokenizer_step[]: pre-tokenizers */
    WHIT_TOKENS_DECODE,    /* whit_tokenizer_step[] */
    WHIT_TOKENS_BEFORE,    /* i32[]: ids that the post-processor adds at the beginning */
    WHIT_TOKENS_AFTER,     /* i32[]: ids that are added at the end */
    WHIT_TOKENS_ENDS,      /* i32[]: ids that end a text or a turn */
    WHIT_TOKENS_STRINGS,   /* texts of steps and added tokens */
    WHIT_TOKENS_N_SECTIONS
};

enum {
    WHIT_TOKEN_TYPE = 7,     /* mask: the GGUF type, see below */
    WHIT_TOKEN_IN_VOCAB = 8, /* the model can produce it */
    WHIT_TOKEN_WHOLE = 16,   /* merging its text gives this single token */
    WHIT_TOKEN_SPECIAL = 32, /* left out by skip_special */
    WHIT_TOKEN_PRESENT = 64, /* the id has a text at all */
};
enum {
    WHIT_TOKEN_NORMAL = 1,
    WHIT_TOKEN_UNKNOWN = 2,
    WHIT_TOKEN_CONTROL = 3,
    WHIT_TOKEN_USER = 4,
    WHIT_TOKEN_UNUSED = 5,
    WHIT_TOKEN_BYTE = 6,
};

typedef enum whit_tokenizer_model {
    WHIT_TOKENIZER_BPE = 1, /* ranked merges of pairs of ids */
    WHIT_TOKENIZER_SPM = 2, /* SentencePiece BPE: any two neighbours whose text is a token, by score */
    WHIT_TOKENIZER_UNIGRAM = 3,
    WHIT_TOKENIZER_WORDLEVEL = 4,
    WHIT_TOKENIZER_WORDPIECE = 5,
} whit_tokenizer_model;

enum { /* whit_tokenizer_header.flags */
       WHIT_TOKENIZER_FUSE_UNK = 1,
       WHIT_TOKENIZER_BYTE_FALLBACK = 2,
       WHIT_TOKENIZER_IGNORE_MERGES = 4,
       /* No token contains U+2581 after another character, so no merge crosses such a place and long texts can be
        * split there. */
       WHIT_TOKENIZER_CUT_AT_SPACE = 8,
       /* Tokens are spelt with byte-level symbols. */
       WHIT_TOKENIZER_BYTE_LEVEL = 16,
};

typedef struct whit_section {
    uint64_t offset_bytes, size_bytes;
} whit_section;

typedef struct whit_tokenizer_header {
    uint8_t magic[8];
    uint32_t version, n_tokens;
    uint64_t size_bytes;
    uint32_t model, flags;
    int32_t bos, eos, unk, pad; /* -1: absent */
    uint32_t max_token_bytes, n_added_raw;
    uint32_t max_word_chars;                                           /* used by WordPiece */
    uint32_t prefix_offset, prefix_bytes, suffix_offset, suffix_bytes; /* prefix of a continuing subword; suffix of a
                                                                        * word's end */
    uint32_t reserved;
    double unk_score; /* Unigram */
    whit_section sections[WHIT_TOKENS_N_SECTIONS];
} whit_tokenizer_header;

typedef struct whit_token_slot {
    uint32_t hash, id_plus_1; /* id_plus_1 0: empty */
} whit_token_slot;

typedef struct whit_merge_slot {
    uint32_t left, right, rank_plus_1, id; /* rank_plus_1 0: empty */
} whit_merge_slot;

/* Children of a node lie side by side, sorted by byte. Node 0 is the root. */
typedef struct whit_trie_node {
    uint32_t first_child, id_plus_1;
    uint16_t n_children;
    uint8_t byte, reserved;
} whit_trie_node;

enum {
    WHIT_ADDED_SPECIAL = 1,
    WHIT_ADDED_SINGLE_WORD = 2,
    WHIT_ADDED_LSTRIP = 4,
    WHIT_ADDED_RSTRIP = 8,
};

typedef struct whit_added_token {
    uint32_t text_offset, text_bytes; /* text to find, in WHIT_TOKENS_STRINGS */
    uint32_t id, flags;
} whit_added_token;

typedef struct whit_tokenizer_step {
    uint32_t kind, flags;
    uint32_t text_offset, text_bytes;       /* pattern, prefix, replaced character */
    uint32_t content_offset, content_bytes; /* replacement */
    uint32_t a, b;
} whit_tokenizer_step;

/* These are the kinds of steps. `text` and `content` are the step's two strings. */
enum {
    /* normalizers */
    WHIT_STEP_NFC = 1,
    WHIT_STEP_NFD,
    WHIT_STEP_NFKC,
    WHIT_STEP_NFKD,
    WHIT_STEP_LOWERCASE,
    WHIT_STEP_STRIP_ACCENTS,   /* a: 1 to remove only marks without width */
    WHIT_STEP_STRIP,           /* a: left, b: right (0 or 1) */
    WHIT_STEP_REPLACE,         /* text by content; REGEX flag. Also a decoder */
    WHIT_STEP_PREPEND,         /* puts text before a text that is not empty */
    WHIT_STEP_COLLAPSE_SPACES, /* SentencePiece: ASCII spaces trimmed, runs of spaces reduced to one */
    WHIT_STEP_PRECOMPILED,     /* text: SentencePiece's character map */
    WHIT_STEP_CLEAN,           /* BERT: removes control characters; white space becomes a space */
    WHIT_STEP_SPACE_HAN,       /* BERT: spaces around each Chinese character */
    /* pre-tokenizers */
    WHIT_STEP_SPLIT = 32,  /* at the matches of text; REGEX, INVERT flags; a: enum whit_split */
    WHIT_STEP_BYTE_LEVEL,  /* PREFIX_SPACE flag; REGEX flag: splits by GPT-2's pattern first. Also a decoder */
    WHIT_STEP_METASPACE,   /* text: replacement; a: enum whit_prepend; SPLIT flag. Also a decoder */
    WHIT_STEP_DIGITS,      /* a: 1 if every digit is a separate piece */
    WHIT_STEP_PUNCTUATION, /* a: enum whit_split */
    WHIT_STEP_WHITESPACE,
    WHIT_STEP_WHITESPACE_SPLIT,
    WHIT_STEP_CHAR_SPLIT, /* text: the character, which is removed */
    WHIT_STEP_BERT,
    /* decoders */
    WHIT_STEP_BYTE_FALLBACK = 64,
    WHIT_STEP_FUSE,
    WHIT_STEP_STRIP_CHAR, /* text: the character; a, b: how many are removed at most at the start and at the end */
    WHIT_STEP_JOIN_SPACE, /* a file without a decoder: a space between tokens */
    WHIT_STEP_WORDPIECE,  /* text: prefix; a: 1 to clean up */
    WHIT_STEP_SUFFIX,     /* text: end-of-word suffix, becomes a space */
    WHIT_STEP_SKIP_FIRST, /* SentencePiece: drops one space at the start of the text */
};
enum { /* flags of a step */
       WHIT_STEP_FLAG_REGEX = 1,
       WHIT_STEP_FLAG_INVERT = 2,
       WHIT_STEP_FLAG_PREFIX_SPACE = 4,
       WHIT_STEP_FLAG_SPLIT = 8,
};
enum whit_split {
    WHIT_SPLIT_REMOVED,
    WHIT_SPLIT_ISOLATED,
    WHIT_SPLIT_MERGED_WITH_PREVIOUS,
    WHIT_SPLIT_MERGED_WITH_NEXT,
    WHIT_SPLIT_CONTIGUOUS,
};
enum whit_prepend { WHIT_PREPEND_NEVER, WHIT_PREPEND_FIRST, WHIT_PREPEND_ALWAYS };

/* Views a checked image: sections are pointers with counts. A view needs no allocation and may be copied. The image
 * must stay mapped and unchanged. */
typedef struct whit_tokenizer_view {
    const uint8_t *image; /* NULL: there is no image */
    size_t size_bytes;
    const whit_tokenizer_header *header;
} whit_tokenizer_view;

/* Checks the header and the section table (constant time, a few hundred bytes read). `image` must
 * be 8-byte aligned. */
whit_status whit_tokenizer_check(const void *image, size_t size_bytes, whit_tokenizer_view *view, whit_error *error);

/* Returns the elements of a section; *n is their number. */
const void *whit_tokenizer_section(const whit_tokenizer_view *view, enum whit_tokenizer_section section,
                                   size_t elem_bytes, size_t *n);
/* Returns a string of the pool; NULL if the range is not in it. */
const uint8_t *whit_tokenizer_string(const whit_tokenizer_view *view, uint32_t offset_bytes, uint32_t size_bytes);

/* Returns the number of ids, holes included: the smallest vocabulary size that a model for it can have. */
static inline uint32_t whit_tokenizer_n_tokens(const whit_tokenizer_view *view)
{
    return view->header->n_tokens;
}
/* Returns the stored spelling of a token (byte-level symbols, U+2581 and all), in place; NULL if the id has no
 * spelling. */
const uint8_t *whit_tokenizer_token_text(const whit_tokenizer_view *view, int32_t id, size_t *n_bytes);
/* Returns WHIT_TOKEN_* bits; 0 if the id does not exist. */
uint8_t whit_tokenizer_token_flags(const whit_tokenizer_view *view, int32_t id);
double whit_tokenizer_token_score(const whit_tokenizer_view *view, int32_t id);
/* Returns whether the id ends a text or a turn. */
bool whit_tokenizer_is_end(const whit_tokenizer_view *view, int32_t id);
/* Returns the vocabulary entry (that the model can produce) with this spelling; -1 if not found. */
int32_t whit_tokenizer_lookup(const whit_tokenizer_view *view, const uint8_t *text, size_t n_bytes);
int32_t whit_tokenizer_lookup_hashed(const whit_tokenizer_view *view, const uint8_t *text, size_t n_bytes,
                                     uint32_t hash);
/* Returns the hash of token texts and of pairs; it is part of the format. */
uint32_t whit_tokenizer_hash(const uint8_t *text, size_t n_bytes);
static inline uint32_t whit_tokenizer_hash_pair(uint32_t left, uint32_t right)
{
    uint64_t mixed = ((uint64_t)left << 32 | right) * 0x9E3779B97F4A7C15u;
    return (uint32_t)(mixed >> 32) ^ (uint32_t)(mixed >> 13);
}

#endif
