import type { Rule } from './rules.ts';

/**
 * Codes and wording of internet access providers and mail filters: Comcast, AT&T, Cox, GoDaddy, Orange, GMX, mail.ru,
 * Yandex, QQ, 163, Proofpoint, Mimecast, Barracuda and others.
 */
export const FILTER_RULES: readonly Rule[] = [
  // Comcast, AT&T, Cox, Spectrum, GoDaddy
  {
    phrases: ['dnsbl:attrbl', '_is_blocked.', 'bl000', 'cloudmark', 'cxbl', 'ptrbl', 'bizanga'],
    meaning: 'IP address blocklisted',
    example: {
      reply: '553 5.3.0 flpi DNSBL:ATTRBL 521< 192.0.2.1 >_is_blocked. For assistance forward this error',
    },
  },
  {
    phrases: ['rl000', 'sent to too many recipients this hour', 'ib607', 'ib605', 'ib504', 'ib508', 'ib705'],
    meaning: 'sender rate limit',
    example: {
      reply: '550 5.1.1 <a@example.com> - 192.0.2.1 has sent to too many recipients this hour. IB607',
    },
  },
  {
    phrases: ['ib212', 'ib702', 'ib703', 'cxthrt', 'cxsnd', 'judged to be spam by the internet community'],
    meaning: 'spam',
    example: {
      reply:
        '552 This message has been rejected due to content judged to be spam by the internet community. IB212',
    },
  },
  {
    phrases: ['ib103', 'ib104', 'ib105', 'ib106', 'ib007', 'ib101', 'ib108', 'ib110', 'ib111', 'ib510'],
    meaning: 'IP address blocklisted',
    example: { reply: '554 p3plibsmtp01 - refused. 192.0.2.1 is not allowed. IB103' },
  },
  // Orange, SFR, Free
  {
    phrases: [
      'ofr004',
      'ofr005',
      'lpn007_5',
      'ofr_108',
      'lpn001_1',
      'ofr_109',
      'too many connections, slow down',
    ],
    meaning: 'rate limit',
    example: { reply: '550 5.7.1 Service refuse. Veuillez essayer plus tard. OFR_108 [108]' },
  },
  {
    phrases: ['ofr_506', 'ofr006_102', 'ofr_515', 'lpn007_506', 'mail rejete. mail rejected', 'spam detecte'],
    meaning: 'spam',
    example: { reply: '550 5.2.0 Mail rejete. Mail rejected. ofr_506 [506]' },
  },
  {
    phrases: [
      'ofr_416',
      'ofr_418',
      'lpn_416',
      'destinataire invalide',
      "destinataire n'existe pas",
      'boite aux lettres inexistante',
    ],
    meaning: 'no such recipient',
    example: {
      reply: '550 5.1.1 Adresse d au moins un destinataire invalide. Invalid recipient. OFR_416 [416]',
    },
  },
  {
    phrases: ['ofr_417', 'boite du destinataire archivee', 'recipient archived mailbox', 'boite archivee'],
    meaning: 'mailbox inactive',
    example: { reply: '550 5.5.0 Boite du destinataire archivee. Archived recipient. OFR_417 [417]' },
  },
  {
    phrases: ['ofr_413', 'boite pleine', 'quota depasse', 'boite aux lettres pleine'],
    meaning: 'mailbox full',
    example: { reply: '552 5.2.2 Boite pleine. Mailbox full. OFR_413' },
  },
  // GMX, web.de, 1&1
  {
    phrases: ['a problem occurred. (ask your postmaster'],
    meaning: 'IP address blocklisted',
    example: {
      reply:
        '554 IP=192.0.2.1 - A problem occurred. (Ask your postmaster for help or to contact tosa@rx.t-online.de)',
    },
  },
  {
    phrases: ['mail send limit exceeded', 'mail message rate exceeded'],
    meaning: 'rate limit',
    example: { reply: '450 Requested mail action not taken: mailbox unavailable Mail send limit exceeded.' },
  },
  {
    phrases: ['reject due to policy restrictions'],
    meaning: 'message rejected by policy',
    example: {
      reply:
        '554 Transaction failed Reject due to policy restrictions. For explanation visit https://postmaster.gmx.net',
    },
  },
  // mail.ru, Yandex, Rambler
  {
    phrases: ['is unavailable: account is disabled', 'is unavailable: user is blocked'],
    meaning: 'mailbox inactive',
    example: {
      reply:
        '550 Message was not accepted -- invalid mailbox. Local mailbox a@mail.ru is unavailable: account is disabled',
    },
  },
  {
    phrases: ['message was not accepted -- invalid mailbox', 'user is terminated', 'no such user!'],
    meaning: 'no such recipient',
    example: {
      reply:
        '550 Message was not accepted -- invalid mailbox. Local mailbox a@mail.ru is unavailable: user not found',
    },
  },
  {
    phrases: ['under suspicion of spam', 'spam message rejected', 'spam message discarded'],
    meaning: 'spam',
    example: { reply: '554 5.7.1 [1] Message rejected under suspicion of SPAM; https://ya.cc/1IrBc' },
  },
  {
    phrases: ['service is currently unavailable. please come back later'],
    meaning: 'greylisted',
    example: { reply: '451 4.7.1 Sorry, the service is currently unavailable. Please come back later.' },
  },
  {
    phrases: ['policy rejection on the target address'],
    meaning: 'blocked by recipient',
    example: { reply: '550 5.7.1 Policy rejection on the target address' },
  },
  // QQ, 163 and 126, Sina
  {
    phrases: [
      'connection frequency limited',
      'ip frequency limited',
      'mi:cel',
      'rp:cel',
      'rp:trc',
      'mi:dmc',
      'rp:rcl',
      'sf:rcl',
    ],
    meaning: 'rate limit',
    example: {
      reply: '550 Connection frequency limited. http://service.mail.qq.com/cgi-bin/help?subtype=1&id=20022',
    },
  },
  {
    phrases: [
      'suspected spam ip',
      'ip is rejected',
      'mi:spb',
      'dt:rbl',
      'mi:irb',
      'rp:irb',
      'ip in blacklist',
    ],
    meaning: 'IP address blocklisted',
    example: { reply: '550 Suspected spam ip http://service.mail.qq.com/cgi-bin/help?id=1001006' },
  },
  {
    phrases: [
      'dt:spm',
      'dt:sum',
      'mail content denied',
      'mail content rejected',
      'hl:itc',
      'spam is embedded in the email',
      'suspected bounce attacks',
    ],
    meaning: 'spam',
    example: { reply: '554 DT:SPM 163 mx1, please see http://mail.163.com/help/help_spam_16.htm' },
  },
  {
    phrases: ['mail is rejected by recipients', 'mail rejected by receiver', 'mail is rejected by receiver'],
    meaning: 'blocked by recipient',
    example: { reply: '550 Mail is rejected by recipients [MAk7SYOeR]' },
  },
  // Filters: Proofpoint, Mimecast, Barracuda, Cisco, Symantec, Trend Micro, Cloudflare
  {
    phrases: [
      'proofpoint.com',
      'csi.mimecast',
      'ip reputation',
      'poor reputation',
      'barracuda reputation',
      'senderbase',
      'ers-ql',
      'ers-rbl',
      'sophos.com/reputation',
      'talosintelligence',
    ],
    meaning: 'IP address blocklisted',
    example: { reply: '554 Blocked - see https://support.proofpoint.com/dnsbl-lookup.cgi?ip=192.0.2.1' },
  },
  {
    phrases: ['mcspamsignature', 'rejected due to security policies', 'local ct'],
    meaning: 'spam',
    example: { reply: '554 email rejected due to security policies - MCSpamSignature.sa.2.2' },
  },
  {
    phrases: [
      'administrative prohibition',
      'envelope blocked',
      'manually blocked senders',
      'envelope rejected',
      'anti-spoofing',
      'local policy violation',
      'anti-spoofing policy',
    ],
    meaning: 'message rejected by policy',
    example: {
      reply:
        '550 Administrative prohibition - envelope blocked - https://community.mimecast.com/docs/DOC-1369#550',
    },
  },
  {
    phrases: ['one or more recipients (@:blocked)', '(@:blocked)'],
    meaning: 'message rejected by policy',
    example: { reply: '550 permanent failure for one or more recipients (a@example.com:blocked)' },
  },
];
