import { describe, expect, it } from 'vitest';
import * as z from 'zod';
import { classify } from '../../../src/mail/classify/classify.ts';
import { normalizeText, WORDINGS } from '../../../src/mail/classify/rules.ts';

const classOf = (text: string) =>
  classify({ phase: 'rcpt', reply: { code: 550, enhanced: null, text } }).bounceClass;

/** Texts of the same meaning in each language: our address is blocked, the sender is rejected, there is no such user. */
const TEXTS = {
  ar: ['تم حظر عنوان IP الخاص بك', 'تم رفض المرسل', 'المستخدم غير موجود'],
  cs: ['Vaše IP adresa je blokována', 'Odesílatel odmítnut', 'Uživatel neexistuje'],
  da: ['Din IP-adresse er blokeret', 'Afsender afvist', 'Brugeren findes ikke'],
  de: ['Ihre IP-Adresse 192.0.2.1 ist gesperrt', 'Absender nicht zugelassen', 'Empfänger unbekannt'],
  el: ['Η διεύθυνση IP έχει αποκλειστεί', 'Ο αποστολέας απορρίφθηκε', 'Άγνωστος χρήστης'],
  en: ['Your IP address is blocked', 'Sender address rejected', 'User unknown'],
  es: ['Su dirección IP está bloqueada', 'Remitente rechazado', 'El usuario no existe'],
  fi: ['IP-osoitteesi on estetty', 'Lähettäjä hylätty', 'Tuntematon vastaanottaja'],
  fr: ['Votre adresse IP est bloquée', 'Expéditeur refusé', 'Utilisateur inconnu'],
  he: ['כתובת ה-IP שלך חסומה', 'השולח נדחה', 'המשתמש לא קיים'],
  hu: ['Az IP-címe le van tiltva', 'Feladó elutasítva', 'Ismeretlen címzett'],
  id: ['Alamat IP Anda diblokir', 'Pengirim ditolak', 'Pengguna tidak ditemukan'],
  it: ['Indirizzo IP bloccato', 'Mittente rifiutato', 'Utente sconosciuto'],
  ja: ['お使いのIPアドレスはブロックされています', '送信者が拒否されました', 'ユーザーが存在しません'],
  ko: ['IP 주소가 차단되었습니다', '발신자가 거부되었습니다', '존재하지 않는 사용자입니다'],
  nl: ['Uw IP-adres is geblokkeerd', 'Afzender geweigerd', 'Gebruiker onbekend'],
  no: ['IP-adressen er blokkert', 'Avsender avvist', 'Ukjent bruker'],
  pl: ['Twój adres IP został zablokowany', 'Nadawca odrzucony', 'Użytkownik nie istnieje'],
  pt: ['O seu endereço IP foi bloqueado', 'Remetente rejeitado', 'Usuário não encontrado'],
  ro: ['Adresa IP este blocată', 'Expeditor respins', 'Utilizator necunoscut'],
  ru: ['Ваш IP-адрес заблокирован', 'Отправитель отклонён', 'Пользователь не найден'],
  sv: ['Din IP-adress är blockerad', 'Avsändaren avvisad', 'Användaren finns inte'],
  th: ['IP ของคุณถูกบล็อก', 'ผู้ส่งถูกปฏิเสธ', 'ไม่พบผู้ใช้'],
  tr: ['IP adresiniz engellendi', 'Gönderen reddedildi', 'Kullanıcı bulunamadı'],
  uk: ['Вашу IP-адресу заблоковано', 'Відправника відхилено', 'Користувача не знайдено'],
  vi: ['Địa chỉ IP của bạn bị chặn', 'Người gửi bị từ chối', 'Người dùng không tồn tại'],
  zh: ['您的IP地址已被列入黑名单', '发件人被拒绝', '收件人不存在'],
} as const;

describe.each(Object.entries(TEXTS))('the wording in %s', (_, [blocked, rejected, unknown]) => {
  it('distinguishes a block of our address, a rejected sender and an unknown user', () => {
    expect([classOf(blocked), classOf(rejected), classOf(unknown)]).toEqual([
      'reputation-block',
      'policy-block',
      'invalid-recipient',
    ]);
  });
});

it.each([TEXTS.de[0], TEXTS.fr[0]])('is understood without accents: %s', (text) => {
  expect(classOf(normalizeText(text))).toBe('reputation-block');
});

const SUBJECTS = [
  'unknownRecipient',
  'blockedAddress',
  'rejectedSender',
  'mailboxFull',
  'mailboxDisabled',
  'spam',
  'tooMany',
];

it('has phrases for every subject in each of the languages, in the form in which texts are compared', () => {
  expect(Object.keys(WORDINGS).toSorted()).toEqual(Object.keys(TEXTS).toSorted());
  for (const [language, wording] of Object.entries(WORDINGS)) {
    const subjects = SUBJECTS.filter((subject) => language !== 'en' || subject !== 'tooMany');
    const { retry, ...others } = wording;
    expect(retry === undefined || z.array(z.string()).min(1).safeParse(retry).success, language).toBe(true);
    expect(Object.keys(others), language).toEqual(subjects);
    const phrases = z.array(z.array(z.string()).min(1)).parse(Object.values(others)).flat();
    expect(
      phrases.filter((phrase) => normalizeText(phrase) !== phrase),
      language,
    ).toEqual([]);
  }
});
