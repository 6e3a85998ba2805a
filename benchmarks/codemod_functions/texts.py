# ruff: noqa
"""Slow functions over strings, as engineers meet them; written before looking at what is found."""

import re


def pig_latin(sentence):
    result = ""
    for word in sentence.split():
        if word[0].lower() in ["a", "e", "i", "o", "u"]:
            result += word + "way "
        else:
            result += word[1:] + word[0] + "ay "
    return result.strip()


def reverse_text(text):
    result = ""
    for character in text:
        result = character + result
    return result


def word_frequency(text):
    words = text.lower().split()
    counts = {}
    for word in words:
        counts[word] = words.count(word)
    return counts


def group_anagrams(words):
    groups = []
    for word in words:
        placed = False
        for group in groups:
            if sorted(group[0]) == sorted(word):
                group.append(word)
                placed = True
                break
        if not placed:
            groups.append([word])
    return groups


def caesar(text, shift):
    alphabet = "abcdefghijklmnopqrstuvwxyz"
    output = ""
    for letter in text:
        if letter in alphabet:
            output += alphabet[(alphabet.index(letter) + shift) % 26]
        else:
            output += letter
    return output


def remove_stop_words(text):
    stop_words = ["the", "a", "an", "and", "or", "but", "in", "on", "at", "to", "for", "of", "is"]
    kept = []
    for word in text.split():
        if word not in stop_words:
            kept.append(word)
    return " ".join(kept)


def parse_log(lines):
    hits = {}
    for line in lines:
        pattern = re.compile(r"(\d+\.\d+\.\d+\.\d+) .* (\d{3})$")
        match = pattern.match(line)
        if match:
            address = match.group(1)
            if address not in hits.keys():
                hits[address] = []
            hits[address].append(int(match.group(2)))
    return hits


def to_csv(rows):
    text = ""
    for row in rows:
        line = ""
        for i in range(len(row)):
            line += str(row[i])
            if i < len(row) - 1:
                line += ","
        text += line + "\n"
    return text


def is_palindrome(text):
    cleaned = ""
    for character in text:
        if character.isalnum():
            cleaned += character.lower()
    backwards = ""
    for i in range(len(cleaned) - 1, -1, -1):
        backwards += cleaned[i]
    return cleaned == backwards


def first_unique(text):
    for character in text:
        if text.count(character) == 1:
            return character
    return None


def levenshtein(left, right):
    if not left:
        return len(right)
    if not right:
        return len(left)
    cost = 0 if left[0] == right[0] else 1
    return min(
        levenshtein(left[1:], right) + 1,
        levenshtein(left, right[1:]) + 1,
        levenshtein(left[1:], right[1:]) + cost,
    )
