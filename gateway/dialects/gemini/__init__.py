"""Google's generateContent, spoken with Gemini and with Vertex."""
