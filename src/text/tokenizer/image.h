/* SPDX-License-Identifier: MIT
 * Declares the tokenizer's binary form ("image"): a contiguous little-endian block of memory that is used in place.
 *
 *    header    struct whit_tokenizer_header: magic, version, special ids, section table
 *    sections  each 8-byte aligned, in the order of enum whit_tokenizer_section
 *
 * An image is canonical: the same tokenizer always has the same bytes, and their digest is part of the model's
 * identity. Opening checks the header and that sections are inside the image. Their contents (offsets, ids, hash slots)
 * are checked where they are used, and the number of probes and steps is limited. A damaged image results in wrong ids
 * or an error, never in a read outside. docs/dev/tokenizer.md describes the layout. Only builder.h creates images. */
#ifndef WHIT_TOKENIZER_IMAGE_H
#define WHIT_TOKENIZER_IMAGE_H

#include "base/mem.h"

#define WHIT_TOKENIZER_MAGIC      "WHITTOKN"
#define WHIT_TOKENIZER_VERSION    1u
#define WHIT_TOKENIZER_MAX_PROBES 256u  /* hash slots that are examined before a text counts as absent */
#define WHIT_TOKENIZER_MAX_STEPS  32u   /* limit of normalizers, of pre-tokenizers, and of decoders */
#define WHIT_TOKENIZER_MAX_WORD   4096u /* WordPiece: longest word, in characters; matching is quadratic */

enum whit_tokenizer_section {
    WHIT_TOKENS_OFFSETS,  /* u32[n_tokens + 1]: where each token's text begins in WHIT_TOKENS_TEXT */
    WHIT_TOKENS_TEXT,     /* texts of all tokens, concatenated */
    WHIT_TOKENS_FLAGS,    /* u8[n_tokens]: WHIT_TOKEN_* bits */
    WHIT_TOKENS_SCORES,   /* f64[n_tokens]; empty if the model has no scores */
    WHIT_TOKENS_HASH,     /* whit_token_slot[2^k]: finds the id of a vocabulary entry by its text */
    WHIT_TOKENS_TRIE,     /* whit_trie_node[]: finds all entries that a text begins with (Unigram, WordPiece) */
    WHIT_TOKENS_MERGES,   /* whit_merge_slot[2^k]: finds rank and result of a merge by its two ids */
    WHIT_TOKENS_SYMBOLS,  /* i32[256]: id of each one-byte character, or of each byte's byte-level symbol; -1: absent */
    WHIT_TOKENS_FALLBACK, /* i32[256]: id of the byte token <0xNN> of each byte; -1: absent */
    WHIT_TOKENS_ADDED,    /* whit_added_token[]: first those for raw text, then those for normalized text, each sorted
                            * by text */
    WHIT_TOKENS_NORMALIZE, /* whit_tokenizer_step[]: normalizers */
    WHIT_TOKENS_SPLIT,     /* whit_tokenizer_step[]: pre-tokenizers */
    WHIT_TOKENS_DECODE,    /* whit_tokenizer_step[]: decoders */
    WHIT_TOKENS_BEFORE,    /* i32[]: ids that the post-processor adds before a text */
    WHIT_TOKENS_AFTER,     /* i32[]: ids that the post-processor adds after a text */
    WHIT_TOKENS_ENDS,      /* i32[]: ids that end a text or a turn */
    WHIT_TOKENS_STRINGS,   /* strings of steps and of added tokens */
    WHIT_TOKENS_N_SECTIONS
};

enum {
    WHIT_TOKEN_TYPE = 7,     /* mask of the token type, as in GGUF (see below) */
    WHIT_TOKEN_IN_VOCAB = 8, /* the model can result in this token */
    WHIT_TOKEN_WHOLE = 16,   /* merging the token's text certainly results in this single token, or the model ignores
                              * merges */
    WHIT_TOKEN_SPECIAL = 32, /* skip_special leaves the token out of decoded text */
    WHIT_TOKEN_PRESENT = 64, /* the id has a text */
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
    WHIT_TOKENIZER_SPM = 2, /* SentencePiece BPE: merges any two neighbours whose joined text is a token, the highest
                             * score first */
    WHIT_TOKENIZER_UNIGRAM = 3,
    WHIT_TOKENIZER_WORDLEVEL = 4,
    WHIT_TOKENIZER_WORDPIECE = 5,
} whit_tokenizer_model;

enum { /* bits of whit_tokenizer_header.flags */
       WHIT_TOKENIZER_FUSE_UNK = 1,
       WHIT_TOKENIZER_BYTE_FALLBACK = 2,
       WHIT_TOKENIZER_IGNORE_MERGES = 4,
       /* No token contains U+2581 after another character. No merge crosses such a position, so long texts can be split
        * there. */
       WHIT_TOKENIZER_CUT_AT_SPACE = 8,
       /* The texts of tokens consist of byte-level symbols. */
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
    uint32_t max_word_chars;                                           /* WordPiece: longest word, in characters */
    uint32_t prefix_offset, prefix_bytes, suffix_offset, suffix_bytes; /* prefix of a subword that continues a word;
                                                                        * suffix of a word's last subword */
    uint32_t reserved;
    double unk_score; /* Unigram: score of an unknown character */
    whit_section sections[WHIT_TOKENS_N_SECTIONS];
} whit_tokenizer_header;

typedef struct whit_token_slot {
    uint32_t hash, id_plus_1; /* id_plus_1 0: empty slot */
} whit_token_slot;

typedef struct whit_merge_slot {
    uint32_t left, right, rank_plus_1, id; /* rank_plus_1 0: empty slot */
} whit_merge_slot;

/* A node's children are contiguous and sorted by byte. Node 0 is the root. */
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
    uint32_t text_offset, text_bytes; /* text to be found, in WHIT_TOKENS_STRINGS */
    uint32_t id, flags;
} whit_added_token;

typedef struct whit_tokenizer_step {
    uint32_t kind, flags;
    uint32_t text_offset, text_bytes;       /* pattern, prefix, or text to be replaced */
    uint32_t content_offset, content_bytes; /* replacement */
    uint32_t a, b;
} whit_tokenizer_step;

/* Kinds of steps. `text` and `content` are the step's two strings; `a` and `b` its two numbers. */
enum {
    /* normalizers */
    WHIT_STEP_NFC = 1,
    WHIT_STEP_NFD,
    WHIT_STEP_NFKC,
    WHIT_STEP_NFKD,
    WHIT_STEP_LOWERCASE,
    WHIT_STEP_STRIP_ACCENTS,   /* a: 1 to remove only marks without width (Mn) */
    WHIT_STEP_STRIP,           /* removes white space; a: at the beginning, b: at the end (0 or 1) */
    WHIT_STEP_REPLACE,         /* replaces `text` by `content`; REGEX flag: `text` is a pattern. Also a decoder */
    WHIT_STEP_PREPEND,         /* puts `text` before the input, unless that is empty */
    WHIT_STEP_COLLAPSE_SPACES, /* SentencePiece: removes spaces at both ends and reduces each run of spaces to one */
    WHIT_STEP_PRECOMPILED,     /* `text`: SentencePiece's character map */
    WHIT_STEP_CLEAN,           /* BERT: removes U+FFFD, controls, formats, private use; white space becomes spaces */
    WHIT_STEP_SPACE_HAN,       /* BERT: adds spaces around each Chinese character */
    /* pre-tokenizers */
    WHIT_STEP_SPLIT = 32,  /* splits at the matches of `text`; flags REGEX, INVERT; a: enum whit_split */
    WHIT_STEP_BYTE_LEVEL,  /* maps bytes to symbols; PREFIX_SPACE flag: adds a space before; REGEX flag: splits by
                            * GPT-2's pattern first. Also a decoder */
    WHIT_STEP_METASPACE,   /* replaces spaces by `text`; a: enum whit_prepend; SPLIT flag. Also a decoder */
    WHIT_STEP_DIGITS,      /* a: 1 if every digit becomes a separate piece */
    WHIT_STEP_PUNCTUATION, /* a: enum whit_split */
    WHIT_STEP_WHITESPACE,
    WHIT_STEP_WHITESPACE_SPLIT,
    WHIT_STEP_CHAR_SPLIT, /* `text`: the character to split at, which is removed */
    WHIT_STEP_BERT,
    /* decoders */
    WHIT_STEP_BYTE_FALLBACK = 64,
    WHIT_STEP_FUSE,
    WHIT_STEP_STRIP_CHAR, /* removes the character `text` at both ends of a token; a, b: how many at most at the
                           * beginning and at the end */
    WHIT_STEP_JOIN_SPACE, /* puts a space between tokens; for files without a decoder */
    WHIT_STEP_WORDPIECE,  /* `text`: the subword prefix; a: 1 to remove spaces before punctuation */
    WHIT_STEP_SUFFIX,     /* `text`: the word suffix, which becomes a space */
    WHIT_STEP_SKIP_FIRST, /* SentencePiece: removes one space at the beginning of the text */
};
enum { /* bits of whit_tokenizer_step.flags */
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

/* A checked image. A view owns no memory and may be copied. The image must stay mapped and unchanged. */
typedef struct whit_tokenizer_view {
    const uint8_t *image; /* NULL: no image */
    size_t size_bytes;
    const whit_tokenizer_header *header;
} whit_tokenizer_view;

/* Checks the header and the section table, which takes constant time, and sets *view. `image` must be 8-byte
 * aligned. */
whit_status whit_tokenizer_check(const void *image, size_t size_bytes, whit_tokenizer_view *view, whit_error *error);

/* Returns the elements of a section; *n is their number. */
const void *whit_tokenizer_section(const whit_tokenizer_view *view, enum whit_tokenizer_section section,
                                   size_t elem_bytes, size_t *n);
/* Returns a string of WHIT_TOKENS_STRINGS; NULL if the range is not inside the section. */
const uint8_t *whit_tokenizer_string(const whit_tokenizer_view *view, uint32_t offset_bytes, uint32_t size_bytes);

/* Returns the number of ids, including unused ones: the smallest vocabulary size that a model for this tokenizer can
 * have. */
static inline uint32_t whit_tokenizer_n_tokens(const whit_tokenizer_view *view)
{
    return view->header->n_tokens;
}
/* Returns the stored text of a token, in place, with byte-level symbols and U+2581 if the tokenizer uses them. NULL if
 * the id has no text. */
const uint8_t *whit_tokenizer_token_text(const whit_tokenizer_view *view, int32_t id, size_t *n_bytes);
/* Returns WHIT_TOKEN_* bits; 0 if the id does not exist. */
uint8_t whit_tokenizer_token_flags(const whit_tokenizer_view *view, int32_t id);
/* Returns a token's score; 0 if the id does not exist or the model has no scores. */
double whit_tokenizer_token_score(const whit_tokenizer_view *view, int32_t id);
/* Returns whether the id ends a text or a turn. */
bool whit_tokenizer_is_end(const whit_tokenizer_view *view, int32_t id);
/* Returns the id of the vocabulary entry (IN_VOCAB) with this text; -1 if not found. */
int32_t whit_tokenizer_lookup(const whit_tokenizer_view *view, const uint8_t *text, size_t n_bytes);
int32_t whit_tokenizer_lookup_hashed(const whit_tokenizer_view *view, const uint8_t *text, size_t n_bytes,
                                     uint32_t hash);
/* Hashes a token's text, or a pair of ids. Both functions are part of the format. */
uint32_t whit_tokenizer_hash(const uint8_t *text, size_t n_bytes);
static inline uint32_t whit_tokenizer_hash_pair(uint32_t left, uint32_t right)
{
    uint64_t mixed = ((uint64_t)left << 32 | right) * 0x9E3779B97F4A7C15u;
    return (uint32_t)(mixed >> 32) ^ (uint32_t)(mixed >> 13);
}

#endif
