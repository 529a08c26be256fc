/* SPDX-License-Identifier: MIT
 * Holds tables of the LaTeX commands that math.js converts. */

/* Converts "name symbol name symbol ..." to a map. */
function symbolTable(text) {
  const words = text.trim().split(/\s+/), table = new Map();
  for (let i = 0; i + 1 < words.length; i += 2) table.set(words[i], words[i + 1]);
  return table;
}

const MATH_LETTERS = symbolTable(`
  alpha α beta β gamma γ delta δ epsilon ϵ varepsilon ε zeta ζ eta η theta θ vartheta ϑ iota ι kappa κ varkappa ϰ
  lambda λ mu μ nu ν xi ξ omicron ο pi π varpi ϖ rho ρ varrho ϱ sigma σ varsigma ς tau τ upsilon υ phi ϕ varphi φ chi χ
  psi ψ omega ω Gamma Γ Delta Δ Theta Θ Lambda Λ Xi Ξ Pi Π Sigma Σ Upsilon Υ Phi Φ Psi Ψ Omega Ω
  infty ∞ partial ∂ nabla ∇ hbar ℏ ell ℓ Re ℜ Im ℑ wp ℘ aleph ℵ beth ℶ emptyset ∅ varnothing ∅ imath ı jmath ȷ
  top ⊤ bot ⊥ angle ∠ degree ° triangle △ square □ Box □ blacksquare ■ qed ∎ hslash ℏ complement ∁ dag † ddag ‡ S §
  copyright © pounds £ euro € checkmark ✓ clubsuit ♣ diamondsuit ♢ heartsuit ♡ spadesuit ♠ flat ♭ natural ♮ sharp ♯`);

const MATH_OPERATORS = symbolTable(`
  pm ± mp ∓ times × div ÷ cdot ⋅ ast ∗ star ⋆ circ ∘ bullet ∙ oplus ⊕ ominus ⊖ otimes ⊗ oslash ⊘ odot ⊙ wedge ∧ land ∧
  vee ∨ lor ∨ cap ∩ cup ∪ uplus ⊎ sqcap ⊓ sqcup ⊔ setminus ∖ smallsetminus ∖ wr ≀ amalg ⨿ ltimes ⋉ rtimes ⋊ diamond ⋄
  le ≤ leq ≤ leqslant ⩽ ge ≥ geq ≥ geqslant ⩾ ne ≠ neq ≠ equiv ≡ sim ∼ simeq ≃ approx ≈ cong ≅ propto ∝ asymp ≍ doteq ≐
  ll ≪ gg ≫ prec ≺ succ ≻ preceq ⪯ succeq ⪰ subset ⊂ supset ⊃ subseteq ⊆ supseteq ⊇ subsetneq ⊊ supsetneq ⊋ sqsubseteq ⊑
  sqsupseteq ⊒ in ∈ notin ∉ ni ∋ perp ⊥ parallel ∥ nparallel ∦ mid ∣ nmid ∤ vdash ⊢ dashv ⊣ models ⊨ vDash ⊨ bowtie ⋈
  coloneqq ≔ triangleq ≜ lesssim ≲ gtrsim ≳ nleq ≰ ngeq ≱ nless ≮ ngtr ≯ because ∵ therefore ∴
  forall ∀ exists ∃ nexists ∄ neg ¬ lnot ¬ prime ′ backslash \\ ldots … dots … dotsc … cdots ⋯ dotsb ⋯ vdots ⋮ ddots ⋱
  leftarrow ← gets ← rightarrow → to → leftrightarrow ↔ Leftarrow ⇐ Rightarrow ⇒ Leftrightarrow ⇔ iff ⟺ implies ⟹
  impliedby ⟸ longleftarrow ⟵ longrightarrow ⟶ longleftrightarrow ⟷ Longleftarrow ⟸ Longrightarrow ⟹
  Longleftrightarrow ⟺ mapsto ↦ longmapsto ⟼ hookrightarrow ↪ hookleftarrow ↩ uparrow ↑ downarrow ↓ updownarrow ↕
  Uparrow ⇑ Downarrow ⇓ nearrow ↗ searrow ↘ swarrow ↙ nwarrow ↖ rightharpoonup ⇀ rightharpoondown ⇁ leftharpoonup ↼
  leftharpoondown ↽ rightleftharpoons ⇌ leadsto ⇝ rightsquigarrow ⇝ nrightarrow ↛ nleftarrow ↚ colon : lt < gt >`);

/* Lists the large operators that have their limits below and above in displayed formulas. */
const MATH_LARGE = symbolTable(`
  sum ∑ prod ∏ coprod ∐ bigcup ⋃ bigcap ⋂ bigvee ⋁ bigwedge ⋀ bigoplus ⨁ bigotimes ⨂ bigodot ⨀ biguplus ⨄ bigsqcup ⨆`);
const MATH_INTEGRALS = symbolTable("int ∫ iint ∬ iiint ∭ oint ∮ oiint ∯");

const MATH_DELIMITERS = symbolTable(`
  ( ( ) ) [ [ ] ] | | / / . . < ⟨ > ⟩ \\{ { \\} } \\| ‖ \\lbrace { \\rbrace } \\lbrack [ \\rbrack ] \\langle ⟨ \\rangle ⟩
  \\lfloor ⌊ \\rfloor ⌋ \\lceil ⌈ \\rceil ⌉ \\lvert | \\rvert | \\vert | \\lVert ‖ \\rVert ‖ \\Vert ‖ \\backslash \\
  \\uparrow ↑ \\downarrow ↓ \\updownarrow ↕ \\Uparrow ⇑ \\Downarrow ⇓ \\lgroup ⟮ \\rgroup ⟯ \\ulcorner ⌜ \\urcorner ⌝`);

const MATH_FUNCTIONS = new Set(("arccos arcsin arctan arg cos cosh cot coth csc deg dim exp hom ker lg ln log sec sin " +
  "sinh tan tanh").split(" "));
const MATH_LIMIT_FUNCTIONS = new Map([["limsup", "lim sup"], ["liminf", "lim inf"],
  ...("det gcd inf lim max min Pr sup argmax argmin".split(" ").map(n => [n, n]))]);

/* Lists accents: the character above or below, and whether it stretches over its base. */
const MATH_ACCENTS = {hat: ["^"], widehat: ["^", true], check: ["ˇ"], tilde: ["~"], widetilde: ["~", true], bar: ["¯"],
  overline: ["¯", true], vec: ["→"], overrightarrow: ["→", true], overleftarrow: ["←", true],
  overleftrightarrow: ["↔", true], dot: ["˙"], ddot: ["¨"], dddot: ["⃛"], acute: ["´"], grave: ["`"], breve: ["˘"],
  mathring: ["˚"], overbrace: ["⏞", true]};
const MATH_UNDER = {underline: "_", underbrace: "⏟", underrightarrow: "→", underleftarrow: "←"};

const MATH_SPACES = {",": "0.1667em", ":": "0.2222em", ">": "0.2222em", ";": "0.2778em", "!": "-0.1667em", " ": "0.333em",
  quad: "1em", qquad: "2em", enspace: "0.5em", thinspace: "0.1667em", medspace: "0.2222em", thickspace: "0.2778em"};

/* Lists alphabets of Unicode: code points of A, a and 0 (0: not in it), and letters that have other code points. */
const MATH_ALPHABETS = {
  bold: [0x1d400, 0x1d41a, 0x1d7ce, {}],
  italic: [0x1d434, 0x1d44e, 0, {h: "ℎ"}],
  bolditalic: [0x1d468, 0x1d482, 0x1d7ce, {}],
  double: [0x1d538, 0x1d552, 0x1d7d8, {C: "ℂ", H: "ℍ", N: "ℕ", P: "ℙ", Q: "ℚ", R: "ℝ", Z: "ℤ"}],
  script: [0x1d49c, 0x1d4b6, 0, {B: "ℬ", E: "ℰ", F: "ℱ", H: "ℋ", I: "ℐ", L: "ℒ", M: "ℳ", R: "ℛ", e: "ℯ", g: "ℊ", o: "ℴ"}],
  fraktur: [0x1d504, 0x1d51e, 0, {C: "ℭ", H: "ℌ", I: "ℑ", R: "ℜ", Z: "ℨ"}],
  sans: [0x1d5a0, 0x1d5ba, 0x1d7e2, {}],
  typewriter: [0x1d670, 0x1d68a, 0x1d7f6, {}],
};
const MATH_FONTS = {mathbf: "bold", textbf: "bold", bf: "bold", boldsymbol: "bolditalic", bm: "bolditalic", mathit: "italic",
  mathbb: "double", mathds: "double", Bbb: "double", mathcal: "script", cal: "script", mathscr: "script", mathfrak: "fraktur",
  mathsf: "sans", mathtt: "typewriter", mathrm: "upright", mathnormal: "italic", rm: "upright"};

/* Lists environments: delimiters around the table, and how columns are aligned (repeated). */
const MATH_TABLES = {matrix: ["", "", "c"], pmatrix: ["(", ")", "c"], bmatrix: ["[", "]", "c"], Bmatrix: ["{", "}", "c"],
  vmatrix: ["|", "|", "c"], Vmatrix: ["‖", "‖", "c"], smallmatrix: ["", "", "c"], cases: ["{", "", "l"],
  rcases: ["", "}", "l"], array: ["", "", "c"], aligned: ["", "", "rl"], align: ["", "", "rl"], split: ["", "", "rl"],
  alignat: ["", "", "rl"], eqnarray: ["", "", "rcl"], gathered: ["", "", "c"], gather: ["", "", "c"],
  multline: ["", "", "c"], equation: ["", "", "c"], subarray: ["", "", "c"]};
