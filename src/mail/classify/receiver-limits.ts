import type { Rule } from './rules.ts';

/**
 * What large mailbox providers reply when they defer or limit mail, from the lists that they publish and the texts that
 * they send. These rules and those of software-limits.ts precede all others, because the texts also have words of other
 * rules: "Too many connections from your IP" is about the number of connections, not about a blocklist.
 */

/** Codes of temporary failures. */
export const TEMPORARY = [421, 432, 450, 451, 452, 454];

export const RECEIVER_LIMIT_RULES: readonly Rule[] = [
  // Google: https://support.google.com/a/answer/3726730
  {
    phrases: ['try again later, closing connection', 'server busy, try again later'],
    codes: TEMPORARY,
    meaning: 'rate limit',
    example: { code: 421, enhanced: '4.7.0', text: 'Try again later, closing connection.', phase: 'mail' },
  },
  {
    phrases: ['mail relay for your ip is limited'],
    meaning: 'IP address rate limit',
    example: { code: 550, enhanced: '5.7.28', text: 'Mail relay for your IP is limited.', phase: 'mail' },
  },
  {
    phrases: ['daily user sending limit exceeded', 'daily sending quota'],
    meaning: 'sender rate limit',
    example: { code: 550, enhanced: '5.4.5', text: 'Daily user sending limit exceeded.', phase: 'mail' },
  },
  {
    phrases: ['not sent over a tls connection', 'certificate validation failed'],
    meaning: 'TLS failed',
    example: {
      code: 421,
      enhanced: '4.7.29',
      text: 'Your email has been rate limited because it was not sent over a TLS connection.',
      phase: 'dot',
    },
  },
  {
    phrases: ['illegal attachment'],
    meaning: 'content rejected',
    example: {
      code: 552,
      enhanced: '5.7.0',
      text: 'Our system detected an illegal attachment on your message.',
      phase: 'dot',
    },
  },
  // Microsoft: 4.7.500 to 4.7.699 (non-delivery reports in Exchange Online)
  {
    phrases: ['access denied, please try again later', 'exceeded the connection limit allowed', 'rp-003'],
    codes: TEMPORARY,
    meaning: 'rate limit',
    example: {
      code: 451,
      enhanced: '4.7.500',
      text: '-699 (AS76051) Access denied, please try again later',
      phase: 'mail',
    },
  },
  // Yahoo and AOL: https://senders.yahooinc.com/smtp-error-codes/
  {
    phrases: ['will be permanently deferred'],
    meaning: 'IP address blocklisted',
    example: {
      code: 421,
      enhanced: '4.7.1',
      text: '[TS03] All messages from 192.0.2.1 will be permanently deferred; Retrying will NOT succeed.',
      phase: 'mail',
    },
  },
  {
    phrases: ['[tss1', 'excessive unknown recipients'],
    meaning: 'sender rate limit',
    example: { code: 451, text: 'VS1-IP Excessive unknown recipients - possible Open Relay', phase: 'rcpt' },
  },
  {
    phrases: ['vs96-', 'vs97-', 'vs98-', 'vs99-'],
    meaning: 'IP address blocklisted',
    example: { code: 451, text: 'VS99-IP3 deferred - see help.yahoo.com', phase: 'mail' },
  },
  // The end of a connection, not of the sender's volume: another connection is accepted.
  {
    phrases: [
      'max message per connection',
      'maximum messages per connection',
      'exceeded allowable connection time',
    ],
    codes: TEMPORARY,
    meaning: 'server error',
    example: {
      code: 421,
      text: 'Max message per connection reached, closing transmission channel',
      phase: 'mail',
    },
  },
  // Apple: https://support.apple.com/102322
  {
    phrases: ['deferred due to excessive volume'],
    meaning: 'recipient rate limit',
    example: {
      code: 421,
      enhanced: '4.7.1',
      text: 'Messages to a@icloud.com deferred due to excessive volume. Try again later',
    },
  },
  {
    phrases: ['service unavailable - try again later'],
    hosts: ['icloud.com'],
    meaning: 'rate limit',
    example: {
      code: 451,
      enhanced: '4.7.1',
      text: 'Service unavailable - try again later',
      mxHost: 'mx01.mail.icloud.com',
      phase: 'mail',
    },
  },
  // GMX, web.de, mail.com: https://postmaster.web.de/de/fehlermeldungen
  {
    phrases: ['too many messages have been received', 'rate limit reached. please try again later'],
    codes: TEMPORARY,
    meaning: 'rate limit',
    example: {
      code: 421,
      text: 'web.de (mxweb113) Nemesis ESMTP Service not available Reject due to policy restrictions Please try again later. Too many messages have been received in a short period of time.',
      phase: 'greeting',
    },
  },
  {
    phrases: ['reject due to policy'],
    codes: TEMPORARY,
    meaning: 'IP address blocklisted',
    example: { code: 421, text: 'Reject due to policy violations', phase: 'greeting' },
  },
  // T-Online: https://postmaster.t-online.de
  {
    phrases: ['for help or to contact * for reset', 'dialup/transient ip not allowed'],
    meaning: 'IP address blocklisted',
    example: {
      code: 554,
      text: 'IP=192.0.2.1 - None/bad reputation. Ask your postmaster for help or to contact tobr@rx.t-online.de for reset. (NOWL)',
      phase: 'greeting',
    },
  },
  // Orange and Wanadoo: https://postmaster.orange.fr
  {
    phrases: [
      'trop de connexions',
      'ofr_104',
      'ofr_105',
      'ofr_999',
      'ofr004_104',
      'ofr004_105',
      'ofr004_999',
    ],
    meaning: 'rate limit',
    example: {
      code: 421,
      text: 'mwinf5c58 ME Service refuse. Veuillez essayer plus tard. service refused, please try later. OFR_999 [999]',
      phase: 'greeting',
    },
  },
  {
    phrases: ['ofr_510', 'le domaine de votre adresse'],
    meaning: 'sender rejected',
    example: {
      code: 550,
      enhanced: '5.5.0',
      text: "Le domaine de votre adresse n'existe pas. OFR_510 [510]",
    },
  },
  // Free: https://postmaster.free.fr
  {
    phrases: ['too many spams from your ip', 'too many errors from your ip'],
    meaning: 'IP address blocklisted',
    example: {
      code: 421,
      text: 'Too many spams from your IP (192.0.2.1), please visit http://postmaster.free.fr/',
      phase: 'greeting',
    },
  },
  // Libero, Virgilio
  {
    phrases: ['blacklisted by csi', 'lib_102'],
    meaning: 'IP address blocklisted',
    example: {
      code: 421,
      text: 'smtp-22.iol.local IP blacklisted by CSI. For remediation please use http://csi.cloudmark.com [smtp-22.iol.local; LIB_102]',
      phase: 'greeting',
    },
  },
  // Yandex: https://yandex.com/support/yandex-360/customers/mail/en/bounces/yandex
  {
    phrases: [
      'recipient has exceeded message rate limit',
      'received too much email in a short period',
      'recipient is receiving too many messages',
    ],
    meaning: 'recipient rate limit',
    example: {
      code: 451,
      enhanced: '4.7.1',
      text: 'The recipient has exceeded message rate limit. Try again later.',
    },
  },
  {
    phrases: ['blocked by spam statistics'],
    meaning: 'IP address blocklisted',
    example: {
      code: 554,
      enhanced: '5.7.1',
      text: 'Blocked by spam statistics - see http://feedback.yandex.ru',
    },
  },
  // QQ: http://service.mail.qq.com/cgi-bin/help?subtype=1&id=20022
  {
    phrases: ['domain frequency limited', 'sender frequency limited'],
    meaning: 'sender rate limit',
    example: {
      code: 550,
      text: 'Domain frequency limited. http://service.mail.qq.com/cgi-bin/help?id=20022',
    },
  },
  {
    phrases: ['domain may not exist or dns check failed'],
    meaning: 'sender rejected',
    example: { code: 550, text: 'Domain may not exist or DNS check failed', mxHost: 'mx3.qq.com' },
  },
  {
    phrases: ['connection denied'],
    hosts: ['qq.com'],
    meaning: 'IP address blocklisted',
    example: { code: 550, text: 'Connection denied', mxHost: 'mx3.qq.com', phase: 'greeting' },
  },
  // NetEase: http://mail.163.com/help/help_spam_16.htm
  {
    phrases: ['hl:icc', 'hl:ifc', 'mi:ccl', 'rp:ccl', 'rp:drc'],
    meaning: 'rate limit',
    example: {
      code: 421,
      text: 'HL:ICC 163 mx1, please see http://mail.163.com/help/help_spam_16.htm',
      phase: 'greeting',
    },
  },
  {
    phrases: ['mi:sfq', 'mi:stc', 'mi:fre', 'rp:qrc'],
    meaning: 'sender rate limit',
    example: {
      code: 451,
      text: 'MI:SFQ 163 mx1, please see http://mail.163.com/help/help_spam_16.htm',
      phase: 'mail',
    },
  },
  {
    phrases: ['hl:rep', 'hl:mep', 'hl:ihu'],
    meaning: 'IP address blocklisted',
    example: {
      code: 421,
      text: 'HL:REP 163 mx1, please see http://mail.163.com/help/help_spam_16.htm',
      phase: 'greeting',
    },
  },
  // NetEase defers suspicious mail with "please try again" and a number, which is no wait.
  {
    phrases: ['dt:spm'],
    codes: [451],
    meaning: 'greylisted',
    example: { code: 451, text: 'DT:SPM 163 mx1, please try again 1769', phase: 'dot' },
  },
];
