// Rejects retired words and type names with two meanings: the project is written in plain technical English (see "Language"
// in ARCHITECTURE.md). Identifiers are split into their words. `node .ci/check-words.mjs [FOLDER|FILE ...]`
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';

/** Each retired word, with what to write instead. */
const WORDS = {
  house: 'deps, setup, service',
  houses: '',
  room: 'module, space',
  rooms: 'modules',
  floor: 'layer, minimum',
  floors: 'layers',
  wish: 'input, options',
  wishes: '',
  wished: '',
  door: 'entry point, listener',
  doors: '',
  stranger: 'other account, unknown sender',
  strangers: '',
  world: 'environment',
  voice: 'behavior, replies',
  voices: '',
  stage: 'phase, step',
  scene: 'setup',
  scenes: '',
  told: 'reported, notified, sent',
  tell: 'report, notify',
  tells: '',
  telling: '',
  whom: '',
  beside: 'also, next to, during',
  besides: '',
  said: 'stated, reported, replied',
  says: 'states, replies',
  hand: 'pass',
  hands: '',
  handed: 'passed',
  somebody: 'someone, a person',
  hence: '',
  thereof: '',
  thereby: '',
  whoever: '',
  lest: '',
  nought: '',
  ere: '',
  neighbour: 'neighbor',
  neighbours: 'neighbors',
  neighbouring: 'neighboring',
  behaviour: 'behavior',
  colour: 'color',
  colours: 'colors',
  honour: 'honor',
  honours: 'honors',
  honoured: 'honored',
  recognise: 'recognize',
  recognises: '',
  recognised: '',
  recognising: '',
  normalise: 'normalize',
  normalised: '',
  normalising: '',
  normalisation: '',
  personalise: 'personalize',
  personalised: '',
  organisation: 'organization',
  organisations: '',
  initialise: 'initialize',
  serialise: 'serialize',
  serialised: '',
  licence: 'license',
  favour: 'favor',
  centre: 'center',
  grey: 'gray',
  analyse: 'analyze',
  catalogue: 'catalog',
  judgement: 'judgment',
  whilst: 'while',
  towards: 'toward',
  misspelt: 'misspelled',
  overleaf: '',
  afresh: 'again',
  anew: 'again',
  aright: '',
  awry: '',
  heed: '',
  heeds: '',
  heard: 'received',
  hears: '',
  speak: '',
  speaks: 'supports, uses',
  spoken: '',
};
/** Retired phrases. */
const PHRASES = [
  /\b(call|called|calls|calling) off\b/gi,
  /\b(go|goes|going|went) on with\b/gi,
  /\b(take|takes|took|taken) on\b/gi,
  /\b(hold|holds|held) up\b/gi,
  /\b(look|looks|looked|looking) at\b/gi,
  /\bat once\b/gi,
  /\bfor good\b/gi,
  /\bis to be\b/gi,
  /\bhas to be\b/gi,
  /\bcame of\b/gi,
  /\bcomes of\b/gi,
  /\bof its own\b/gi,
  /\bits own of\b/gi,
  /\bin good order\b/gi,
  /\bby now\b/gi,
  /\bleft alone\b/gi,
  /\bexists? already\b/gi,
  /\bbelongs? into\b/gi,
  /\blook-ups?\b/gi,
  /\bfor ever\b/gi,
  /\ban own\b/gi,
];
/** What is not the project's own wording. */
const ALLOWED = [
  /Math\.floor/g,
  // A filter of template languages.
  /ceil floor abs/g,
  /hello,? world/gi,
  /by hand/gi,
  /first-hand/gi,
  /greylist\w*/gi,
  /grey-list\w*/gi,
  /room-id/gi,
  // A column of consents.
  /said_at/g,
  // The wording of Postfix and qmail before a quoted reply.
  /\bsaid:/g,
  // A stored field of the sessions of an attempt.
  /\bstage: (phase|string|z\.string|'rcpt')/g,
  /\btls, stage, reply\b/g,
  /\$\{stage\}/g,
  /"stage":"\w+"/g,
];
const SKIPPED =
  /^(test\/data\/|test\/mail\/(golden|newsletter)\/|\.ci\/check-words\.mjs|package-lock\.json|LICENSE|config\/repl(?:ies|y-languages)\.toml|src\/store\/rows\/packed-json-dictionary\.ts|test\/store\/rows\/packed-json\.test\.ts)/;
const READ = /\.(ts|tsx|css|html|mts|js|mjs|cjs|md|toml|sql|json|service|sh)$/;

const files = execFileSync('git', ['ls-files', ...process.argv.slice(2)], {
  encoding: 'utf8',
  maxBuffer: 1 << 26,
})
  .split('\n')
  .filter((file) => READ.test(file) && !SKIPPED.test(file));
let count = 0;
for (const file of files) {
  readFileSync(file, 'utf8')
    .split('\n')
    .forEach((line, index) => {
      const text = ALLOWED.reduce((rest, allowed) => rest.replaceAll(allowed, ' '), line);
      const words =
        text
          .replaceAll(/([a-z])([A-Z])/g, '$1 $2')
          .toLowerCase()
          .match(/[a-z]+/g) ?? [];
      const found = [
        ...words
          .filter((word) => Object.hasOwn(WORDS, word))
          .map((word) => (WORDS[word] ? `${word} (${WORDS[word]})` : word)),
        ...PHRASES.flatMap((phrase) => text.match(phrase) ?? []),
      ];
      if (found.length === 0) return;
      count += found.length;
      console.log(`${file}:${index + 1}: ${[...new Set(found)].join(', ')}`);
    });
}
console.log(`words: ${files.length} files, ${count} retired words`);

// One name, one meaning: no two modules export types of the same name.
const declarations = new Map();
for (const file of files.filter((name) => /^src\/.*\.tsx?$/.test(name))) {
  for (const [, name] of readFileSync(file, 'utf8').matchAll(/^export (?:interface|type|class) (\w+)/gm))
    declarations.set(name, [...(declarations.get(name) ?? []), file]);
}
const repeated = [...declarations].filter(([, places]) => new Set(places).size > 1);
for (const [name, places] of repeated) console.log(`type ${name} is exported by ${places.join(' and ')}`);
process.exit(count === 0 && repeated.length === 0 ? 0 : 1);
