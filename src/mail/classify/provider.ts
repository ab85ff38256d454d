import { type ProgramReplyRule, readProgramReplies } from '../../config/program-replies.ts';
import type { ReplyPhase, Rule } from './rules.ts';

/**
 * What large mailbox providers reply, from the lists that they publish and the texts that they send: the rules of
 * `config/replies.toml`. They precede all others, because the texts also have words of other rules: "Too many connections
 * from your IP" is about the number of connections, not about a blocklist.
 */
export const PROVIDER_RULES: readonly Rule[] = readProgramReplies().map(toRule);

function toRule({ match, code, enhanced, mx, phase, meaning, example }: ProgramReplyRule): Rule {
  const [, digits = '', status, text = ''] =
    /^(\d{3}) (?:([245]\.\d{1,3}\.\d{1,3}) )?(.*)$/s.exec(example.reply) ?? [];
  return {
    ...(match === undefined ? {} : { phrases: listOf(match) }),
    ...(code === undefined ? {} : { codes: listOf(code) }),
    ...(enhanced === undefined ? {} : { enhanced: listOf(enhanced) }),
    ...(mx === undefined ? {} : { hosts: listOf(mx).map((host) => host.replace(/^\*\./, '')) }),
    // Sound here and below: the test of the file compares the phases with the schema.
    ...(phase === undefined ? {} : { phases: listOf(phase) as ReplyPhase[] }),
    meaning,
    example: {
      code: Number(digits),
      text,
      ...(status === undefined ? {} : { enhanced: status }),
      ...(example.mx === undefined ? {} : { mxHost: example.mx }),
      ...(example.phase === undefined ? {} : { phase: example.phase as ReplyPhase }),
    },
  };
}

function listOf<Value>(given: Value | Value[]): Value[] {
  return Array.isArray(given) ? given : [given];
}
