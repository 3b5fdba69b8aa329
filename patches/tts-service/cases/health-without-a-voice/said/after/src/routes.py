async def health_check(settings):
    model_loaded = get_engine()._initialized
    return HealthResponse(
        status="healthy" if model_loaded else "no voice is loaded",
        version="1.0.0",
        model_loaded=model_loaded,
    )
